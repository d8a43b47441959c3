"""Trains models: labeled documents first, empty columns left out, one-vs-rest, calibration."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import Compact, compact
from core.documents.value_scale import ValueScale, value_scale
from core.evaluation.training_warnings import fraction_warnings, one_class_warnings, scale_warnings, time_warnings
from core.models.assembly import model_of
from core.models.linear import LinearModel
from core.models.model import Model
from core.one_algorithm import Solutions, solve
from core.one_vs_rest import n_problems
from core.options.auto import AutoOptions
from core.problem.result import Status, ensure_complete, unlabeled_scores
from core.progress import Phase
from core.registry import AUTO, CLUSTERS, with_rest
from core.selection.auto import auto
from core.selection.blocks import Selecting
from core.several.train import train_several
from core.training_context import Run, Training, TrainingContext
from core.training_task import CheckedTask, TrainingTask
from core.validation.confidence import Confidence, Validated
from core.watch import Stopped
from core.weak_supervision.clusters import Clusters
from core.weak_supervision.derived import Derived, learn
from core.weak_supervision.one_class import OneClass
from core.weak_supervision.pooling import Pooled

__all__ = ["Training", "TrainingContext", "TrainingTask", "train"]


_DEFAULT_CONTEXT = TrainingContext()


def train(task: TrainingTask, context: TrainingContext = _DEFAULT_CONTEXT) -> Training:
    """Train a model on labeled and unlabeled documents.

    Two classes make one problem with the second as the positive one; more make one-vs-rest, a problem a class, run side
    by side. A stop by the observer returns the best iterates with status ``cancelled``. Raises UnknownAlgorithm,
    InvalidOption, InvalidDocuments, and ModelTooLarge as soon as a solver knows that the model will take more than
    ``context.max_model_bytes``.
    """
    if task.label_sets is not None and task.algorithm != CLUSTERS.name:
        return train_several(task, task.label_sets, context)
    derived = _derived(task, context)
    if derived is not None:
        return derived
    checked = CheckedTask.of(task)
    run = Run.of(context)
    run.watch.begin(Phase(task.algorithm))
    try:
        documents = compact(task.rows, checked.order, run.watch, context.engine.space)
        scale = value_scale(documents.rows, run.watch).of_original(checked.order, documents.features)
        solutions = (
            _solve_auto(checked, documents, run) if checked.algorithm is AUTO else solve(checked, documents, run)
        )
    except Stopped:
        return _untrained(checked.classes, checked.unlabeled, task.rows.n_features, run.counter.passes)
    try:
        ensure_complete(solutions.results)
        validated, status = solutions.validate(), reduce(Status.worse, (result.status for result in solutions.results))
    except Stopped:
        validated, status = None, Status.CANCELLED
    model = model_of(
        documents,
        checked.order,
        task.rows.n_features,
        checked.classes,
        [result.decision for result in solutions.results],
    )
    return _training(checked, solutions, model, validated, status, run, scale)


def _derived(task: TrainingTask, context: TrainingContext) -> Training | None:
    """A training on labels that are made of votes, of one class, or of nothing; None of a task with labels of several
    classes.
    """
    derive: Callable[[Run], Derived]
    labeled = CheckedTask.labeled(task)
    if task.algorithm == CLUSTERS.name:
        derive, labeled, classes = partial(Clusters.of, task), np.zeros_like(labeled), list[str | int]([0, 1])
    elif task.votes is not None:
        derive, classes = partial(Pooled.of, task, task.votes), list(task.votes.classes)
    else:
        classes = [task.classes[position] for position in np.unique(task.class_indices[labeled])]
        both = with_rest(task.algorithm, classes, task.other, bool(labeled.all()))
        if both == classes:
            return None
        derive, classes = partial(OneClass.of, task, both), both
    try:
        return learn(derive, train, context)
    except Stopped:
        return _untrained(classes, np.flatnonzero(~labeled), task.rows.n_features, 0.0)


def _solve_auto(checked: CheckedTask, documents: Compact, run: Run) -> Solutions:
    """The solutions that auto selects; raises Stopped."""
    assert isinstance(checked.options, AutoOptions)
    space = run.context.engine.space
    selection = auto(
        Selecting(
            rows=documents.rows,
            class_indices=checked.class_indices,
            classes=checked.classes,
            options=checked.options,
            given=checked.known_fractions(),
            data_of=partial(checked.selection_data, checkpoint=run.watch, space=space),
            scheduler_of=run.scheduler,
            watch=run.watch,
            parts=checked.parts_of(documents.features),
            space=space,
        )
    )
    return Solutions(
        selection.results,
        lambda: Validated(selection.calibrate(), selection.held_out, selection.likelier),
        selection.report,
    )


def _training(
    checked: CheckedTask,
    solutions: Solutions,
    model: Model,
    validated: Validated | None,
    status: Status,
    run: Run,
    scale: ValueScale,
) -> Training:
    """The outcome when all is solved; the observer gets a last report."""
    results, watch = solutions.results, run.watch
    confidence = None
    if validated is not None:
        model, confidence = (
            replace(model, calibration=validated.calibration),
            validated.confidence(checked.class_indices, checked.drawn),
        )
    # one two-class problem after the other: their order in time depends on the threads
    trace = [point for result in results for point in result.trace]
    if status is not Status.CANCELLED:
        # the last report may be behind: work that takes no time reports nothing
        watch.end(trace[-1] if trace else watch.latest)
    scores = unlabeled_scores(results)
    probabilities = model.probabilities(scores)
    return Training(
        model=model,
        unlabeled=checked.unlabeled,
        scores=scores,
        probabilities=probabilities,
        objective=sum(result.objective for result in results),
        status=status,
        warnings=_warnings(checked, solutions, scale, model.labels_of(scores, probabilities), confidence),
        trace=[watch.of_all(point) for point in trace],
        passes=run.counter.passes,
        report=_report(solutions, confidence),
        range_remedy=scale.remedy(checked.task.names) or checked.options.range_remedy,
        largest=scale.fault(checked.task.names),
        held_out=None if validated is None else checked.of_all_labels(validated.held_out),
        confidence=confidence,
    )


def _report(solutions: Solutions, confidence: Confidence | None) -> dict[str, Any] | None:
    """The report, with the verdict of labels left out where any were."""
    if confidence is None:
        return solutions.report
    return {**(solutions.report or {}), "confidence": confidence.level, "summary": [confidence.sentence()]}


def _warnings(
    checked: CheckedTask,
    solutions: Solutions,
    scale: ValueScale,
    given: NDArray[np.intp],
    confidence: Confidence | None,
) -> list[str]:
    """Warnings for the owner of the documents; ``given`` are the classes of the unlabeled ones."""
    warnings, options, statuses = [], checked.options, [result.status for result in solutions.results]
    if checked.task.start is not None and not solutions.warm:
        warnings.append(
            "the model to start from is of no use to this algorithm or to these classes: training started from nothing"
        )
    if options.needs_fractions and not len(checked.unlabeled):
        warnings.append("there are no unlabeled documents: the model is the supervised one")
    warnings += scale_warnings(options, statuses, scale, checked.task.names, len(checked.class_indices))
    if {*statuses} <= {Status.CONVERGED, Status.ITERATION_LIMIT}:
        warnings += one_class_warnings(
            given, checked.class_indices, checked.classes, checked.known_fractions(), options.one_class_remedy
        )
    if confidence is not None and confidence.level == "none":
        warnings.append(confidence.sentence())
    return warnings + fraction_warnings(solutions.report) + time_warnings(solutions.report)


def _untrained(classes: Sequence[str | int], unlabeled: NDArray[np.int64], n_features: int, passes: float) -> Training:
    """The outcome when training is stopped before there is any iterate, after so many passes: coefficients of no
    feature.
    """
    n_columns = n_problems(len(classes))
    model = LinearModel(classes, n_features, np.zeros(0, np.uint32), np.zeros((0, n_columns)), np.zeros(n_columns))
    return Training(
        model, unlabeled, np.full((len(unlabeled), n_columns), np.nan), None, np.nan, Status.CANCELLED, [], [], passes
    )
