"""Trains models: labeled documents first, empty columns left out, one-vs-rest, calibration.

One algorithm, of which class fractions and some options may be the data's choice, is one way; ``auto`` compares
several.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import Compact
from core.documents.rows import SparseRows
from core.documents.value_scale import ValueScale, value_scale
from core.engine.requests import Steps
from core.evaluation.training_warnings import NO_UNLABELED, one_class_warnings, scale_warnings
from core.incomplete import Incomplete
from core.models.assembly import Points, model_of, scores_in_slices, starting_points
from core.models.model import LinearModel, Model
from core.numerics.elementary import Matrix, Vector
from core.one_vs_rest import phases_of, positives_of
from core.options.auto import AutoOptions
from core.options.base import Options
from core.options.kernel import KernelChoice
from core.problem import Problem, Result, Status, ensure_complete, unlabeled_scores
from core.progress import CALIBRATION, WHOLE, Phase, Span, Stopped
from core.registry import AUTO, CLUSTERS, Algorithm, with_rest
from core.selection.auto import auto
from core.selection.candidates import Selecting
from core.selection.class_fractions import by_class, estimate_fractions, fraction_warnings
from core.selection.data import with_frequent_features
from core.selection.report import time_warnings
from core.several.train import train_several
from core.task import Run, SingleTask, Training, TrainingContext, TrainingTask, untrained
from core.validation.calibration import fit_calibration
from core.validation.confidence import Confidence, Validated
from core.validation.folds import N_FOLDS, cross_val_scores
from core.validation.kernel_tuning import Tuning, tune, tuning_warnings
from core.weak_supervision.clusters import Clusters
from core.weak_supervision.derived import Derived, learn
from core.weak_supervision.one_class import OneClass
from core.weak_supervision.pooling import Pooled

_ESTIMATED = 0.1
"""share of the work that an estimate of the class fractions takes, where there is one"""


class Solutions(NamedTuple):
    """The solutions of the two-class problems, their validation and their report."""

    results: list[Result]
    validate: Callable[[], Validated | None]
    """held-out scores and the calibration by them, None if nothing asks for it; raises Stopped"""
    report: dict[str, Any] | None
    warm: bool = False
    """whether a solver started from another model"""
    as_new: bool = False
    """whether unlabeled documents are scored as if each were new, and not as the model scores them"""


def _solve_by_one(checked: SingleTask, documents: Compact, run: Run) -> Solutions:
    """The solutions of one algorithm, class fractions known or estimated; raises Stopped before there is one."""
    task = checked.task
    points = starting_points(
        task.start, checked.algorithm, task.rows, checked.order, documents.features, checked.classes, run.watch
    )
    fractions, report, span = _class_fractions(checked, documents, run)
    tuning, span = _tuning(checked, documents, run, span)
    report = report if tuning is None else {**tuning.report, **(report or {})}
    chosen = {} if tuning is None else tuning.chosen
    solver = _OneVsRest(checked, run, fractions, points, chosen, checked.part_numbers(documents.features))
    warm = any(point is not None for point in points)
    labeled = np.arange(len(checked.class_indices))
    if not checked.options.needs_probabilities:
        return Solutions(solver.solve(documents.rows, labeled, span), lambda: None, report, warm)
    spans = span.equal(N_FOLDS + 1)
    results = solver.solve(documents.rows, labeled, spans[0])

    def solve_without(fold: int, rows: SparseRows, kept: NDArray[np.int64]) -> list[Result]:
        cold: Points = [None] * len(points)  # the points to start from know the labels
        return replace(solver, points=cold, fold=fold).solve(rows, kept, spans[fold + 1])

    def validate() -> Validated:
        held_out = cross_val_scores(
            documents.rows,
            checked.class_indices,
            len(points),
            task.seed,
            solve_without,
            run.watch,
            run.context.engine.space,
        )
        return Validated(
            fit_calibration(held_out, checked.class_indices, unlabeled_scores(results), fractions, run.watch),
            held_out,
        )

    return Solutions(results, validate, report, warm)


def _class_fractions(
    checked: SingleTask, documents: Compact, run: Run
) -> tuple[Vector | None, dict[str, Any] | None, Span]:
    """Class fractions for a solver that needs them, their place in the report, and the stretch of work that is left;
    raises Stopped.
    """
    known = checked.known_fractions()
    if known is not None:
        return known, {"class_fractions": by_class(known, checked.classes)}, WHOLE
    if not checked.options.needs_fractions:
        return None, None, WHOLE
    centred = len(checked.columns_by_part(documents.features)) < 2
    data = with_frequent_features(
        checked.selection_data(documents.rows, centred, run.watch, run.context.engine.space), run.watch
    )
    with run.scheduler(data.scaled.rows) as scheduler:
        estimate = estimate_fractions(scheduler, data, Span(0.0, _ESTIMATED), run.watch)
    return estimate.fractions, estimate.report(checked.classes), Span(_ESTIMATED, 1.0)


def _tuning(checked: SingleTask, documents: Compact, run: Run, span: Span) -> tuple[Tuning | None, Span]:
    """Options of a kernel method as the data choose them, if at all, and the stretch of work that is left; raises
    Stopped.
    """
    options = checked.options
    if not isinstance(options, KernelChoice) or not options.is_tuned:
        return None, span
    before, rest = span.between(0.0, options.tuning_share), span.between(options.tuning_share, 1.0)
    tuning = tune(
        run.scheduler,
        documents.rows,
        checked.class_indices,
        checked.classes,
        options,
        checked.task.seed,
        run.watch,
        before,
    )
    run.watch.begin(Phase(checked.task.algorithm))
    return tuning, rest


Solver = Callable[[Problem, Options, Vector | None], Steps]
"""Steps towards a Result, not yet begun, to be run by a Scheduler over the rows of the problem.

The vector is what the registry says that the algorithm starts from: coefficients, shape (n_features + 1,), the bias
last, or scores of all rows, shape (n_rows,)."""


def load_solver(algorithm: Algorithm, n_problems: int = 1) -> Solver:
    """The solver of an algorithm for so many two-class problems over the same rows, imported at first use.

    Of an algorithm that solves them together each call has the steps of the next problem.
    """
    module, _, function = algorithm.solver.partition(":")
    found = getattr(import_module(module), function)
    return cast(Solver, found(n_problems) if algorithm.joint else found)


@dataclass(frozen=True)
class _OneVsRest:
    """The solver of a task, for all its two-class problems."""

    checked: SingleTask
    run: Run
    fractions: Vector | None
    """shape (n_classes,), for a solver that needs them"""
    points: Points
    chosen: Mapping[str, float]
    """options that the data chose"""
    part_of: NDArray[np.int64] | None
    """see Problem"""
    fold: int | None = None
    """fold that is left out for calibration"""

    def solve(self, rows: SparseRows, labeled: NDArray[np.int64], span: Span) -> list[Result]:
        """Solutions over rows, first the labeled ones at these positions among all labeled ones; if stopped, the best
        iterates.
        """
        solver = load_solver(self.checked.algorithm, len(self.points))
        options, seed = self.checked.options, self.checked.task.seed
        class_indices = self.checked.class_indices[labeled]
        costs = np.concatenate([self.checked.weights[labeled], np.ones(rows.n_rows - len(labeled))])

        def begin(positive: int, point: Vector | None) -> Steps:
            y = np.where(class_indices == positive, 1.0, -1.0)
            problem = replace(Problem.of(rows, y, costs, seed), part_of=self.part_of)
            own = (
                {}
                if self.fractions is None
                else {"positive_fraction": float(self.fractions[positive]), "class_fractions": None}
            )
            return solver(problem, options.model_copy(update={**self.chosen, **own}), point)

        classes = self.checked.classes
        phases = phases_of(classes)
        if self.fold is not None:
            phases = [phase.to(CALIBRATION, fold=self.fold) for phase in phases]
        places = zip(phases, positives_of(len(classes)), self.points, strict=True)
        with self.run.scheduler(rows) as scheduler:
            return scheduler.run({phase: partial(begin, positive, point) for phase, positive, point in places}, span)


__all__ = ["Training", "TrainingContext", "TrainingTask", "train"]


_DEFAULT_CONTEXT = TrainingContext()


def train(task: TrainingTask, context: TrainingContext = _DEFAULT_CONTEXT) -> Training:
    """Train a model on labeled and unlabeled documents.

    Two classes make one problem with the second as the positive one; more make one-vs-rest, a problem a class, run side
    by side. A stop by the observer returns the best iterates with status ``cancelled``. Raises UnknownAlgorithm,
    InvalidOption, InvalidDocuments, and ModelTooLarge as soon as a solver knows that the model will take more than
    ``context.max_model_bytes``.
    """
    incomplete = Incomplete.of(task)
    if incomplete is None:
        return _train(task, context)
    try:
        return incomplete.trained(_train, context)
    except Stopped:
        checked = SingleTask.of(task)
        return untrained(checked.classes, checked.unlabeled, task.rows.n_features)


def _train(task: TrainingTask, context: TrainingContext) -> Training:
    """As ``train``, where all documents are of one model."""
    if task.label_sets is not None and task.algorithm != CLUSTERS.name:
        return train_several(task, task.label_sets, context)
    derived = _derived(task, context)
    if derived is not None:
        return derived
    checked = SingleTask.of(task)
    run = Run.of(context)
    run.watch.begin(Phase(task.algorithm))
    try:
        documents = checked.compact(run)
        scale = value_scale(documents.rows, run.watch).of_original(checked.order, documents.features)
        solutions = (
            _solve_auto(checked, documents, run)
            if checked.algorithm is AUTO
            else _solve_by_one(checked, documents, run)
        )
    except Stopped:
        return untrained(checked.classes, checked.unlabeled, task.rows.n_features, run.counter.passes)
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
    scores = unlabeled_scores(solutions.results)
    if solutions.as_new and isinstance(model, LinearModel) and status is not Status.CANCELLED:
        # calibration is by scores that unlabeled documents would have were they new; the model knows each of them
        try:
            scores = scores_in_slices(model, task.rows, run.watch)[checked.unlabeled]
        except Stopped:
            status = Status.CANCELLED
    return _training(checked, solutions, model, scores, validated, status, run, scale)


def _derived(task: TrainingTask, context: TrainingContext) -> Training | None:
    """A training on labels that are made of votes, of one class, or of nothing; None of a task with labels of several
    classes.
    """
    derive: Callable[[Run], Derived]
    labeled = SingleTask.labeled(task)
    if task.algorithm == CLUSTERS.name:
        derive, labeled, classes = partial(Clusters.of, task), np.zeros_like(labeled), list[str | int]([0, 1])
    else:
        named = [task.classes[position] for position in np.unique(task.class_indices[labeled])]
        named = named if task.votes is None else list(task.votes.classes)
        n_labeled = int(np.count_nonzero(labeled))
        classes = with_rest(task.algorithm, named, task.other, n_labeled, len(labeled) - n_labeled)
        if classes != named:
            derive = partial(OneClass.of, task, classes)
        elif task.votes is not None:
            derive = partial(Pooled.of, task, task.votes)
        else:
            return None
    try:
        return learn(derive, _train, context)
    except Stopped:
        return untrained(classes, np.flatnonzero(~labeled), task.rows.n_features)


def _solve_auto(checked: SingleTask, documents: Compact, run: Run) -> Solutions:
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
            data_of=partial(
                checked.selection_data, checkpoint=run.watch, space=space, bags=documents.terms is not None
            ),
            scheduler_of=run.scheduler,
            watch=run.watch,
            parts=checked.columns_by_part(documents.features),
            space=space,
            linear=checked.task.linear,
            supervised=checked.task.supervised,
        )
    )
    report = selection.report
    if documents.terms is not None:
        report = {**report, "features": f"{documents.terms.in_words}, {report['features']}"}
    return Solutions(
        selection.results,
        lambda: Validated(selection.calibrate(), selection.held_out, selection.likelier),
        report,
        as_new=selection.as_new,
    )


def _training(
    checked: SingleTask,
    solutions: Solutions,
    model: Model,
    scores: Matrix,
    validated: Validated | None,
    status: Status,
    run: Run,
    scale: ValueScale,
) -> Training:
    """The outcome when all is solved, with ``scores`` of the unlabeled documents; the observer gets a last report."""
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
        report=solutions.report if confidence is None else {**(solutions.report or {}), **confidence.report()},
        range_remedy=scale.remedy(checked.task.names) or checked.options.range_remedy,
        largest=partial(scale.fault, checked.task.names),
        held_out=None if validated is None else checked.of_all_labels(validated.held_out),
        confidence=confidence,
    )


def _warnings(
    checked: SingleTask,
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
    # a supervised model is a part of a sum, which has warnings of its own about unlabeled documents
    if options.needs_fractions and not len(checked.unlabeled) and not checked.task.supervised:
        warnings.append(NO_UNLABELED)
    warnings += scale_warnings(options, statuses, scale, checked.task.names, len(checked.class_indices))
    if {*statuses} <= {Status.CONVERGED, Status.ITERATION_LIMIT} and not checked.task.supervised:
        warnings += one_class_warnings(
            given, checked.class_indices, checked.classes, checked.known_fractions(), options.one_class_remedy
        )
    if confidence is not None and confidence.level == "none":
        warnings.append(confidence.sentence())
    report = solutions.report or {}
    return [*warnings, *fraction_warnings(report), *time_warnings(report), *tuning_warnings(report)]
