"""Trains a model of several labels: scores of every label, then its frequency, probability and threshold together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.label_sets import LabelSets
from core.documents.reorder import Compact
from core.documents.rows import SparseRows
from core.documents.value_scale import ValueScale, value_scale
from core.engine.runner import Scheduler
from core.errors import InvalidDocuments
from core.evaluation.measures import LabelConfusion
from core.evaluation.training_warnings import scale_warnings
from core.models.assembly import model_of
from core.numerics.elementary import expit
from core.options.auto import AutoOptions
from core.options.linear import LinearOptions, SvmOptions, TsvmOptions
from core.problem import Linear, Problem, Status, unlabeled_scores
from core.progress import WHOLE, Phase, Span, Stopped, Watch
from core.selection.data import ScaledRows, scale_features
from core.selection.report import time_report, time_warnings
from core.several.members import FOLD_TOLERANCE, LabelSolutions, solve_labels
from core.several.ridge import find_directions, is_solvable, solve_ridge
from core.several.sigmoids import LabelFit, best_thresholds, fit_labels
from core.several.task import SeveralTask
from core.task import Run, Training, TrainingContext, TrainingTask, untrained
from core.validation.label_calibration import LabelCalibration

_SMOOTHING = 0.2
"""λ of auto times the number of labeled documents: a document weighs as much in a mean of few as of many"""
_FIRST = 0.2
"""share of the work that the supervised solutions are where transductive ones follow"""
_DIRECTIONS = 0.8
"""share of the work, and of the seconds, until the directions that documents share are found"""


class _Choice(NamedTuple):
    """A member that may be the model, fitted to labels left out."""

    method: str
    member: LabelSolutions
    fit: LabelFit
    report: Mapping[str, Any]
    """what was chosen besides"""


def train_several(task: TrainingTask, sets: LabelSets, context: TrainingContext) -> Training:
    """Train a model of several labels, as ``core.train.train`` does one of one label.

    Every label is a two-class problem over the same rows. The supervised SVMs say, by labels left out, how likely each
    label is by its score, and so how frequent among the unlabeled documents. Transductive SVMs take these frequencies.
    """
    checked = SeveralTask.of(task, sets)
    run = Run.of(context)
    run.watch.begin(Phase(task.algorithm))
    try:
        documents = checked.compact(run)
        _check_size(len(checked.classes), len(documents.features), context.max_model_bytes)
        scale = value_scale(documents.rows, run.watch).of_original(checked.order, documents.features)
        scaled = _scaled(checked, documents, run)
        choice = _chosen(checked, scaled, _names(checked, documents, scaled), run)
    except Stopped:
        n_labels = len(checked.classes)
        calibration = LabelCalibration(np.ones(n_labels), np.zeros(n_labels), np.full(n_labels, 0.5))
        return untrained(checked.classes, checked.unlabeled, task.rows.n_features, run.counter.passes, calibration)
    return _training(checked, documents, scaled, choice, run, scale)


def _check_size(n_labels: int, n_features: int, most: int | None) -> None:
    n_bytes = 8 * n_labels * n_features
    if most is not None and n_bytes > most:
        raise InvalidDocuments(
            f"a model of {n_labels:,} labels and {n_features:,} features would take {n_bytes:,} bytes, more than the "
            f"{most:,} that a model may take here; train with fewer labels, or with fewer terms (text.max_terms)"
        )


def _scaled(checked: SeveralTask, documents: Compact, run: Run) -> ScaledRows:
    """The rows as the algorithm reads them."""
    if checked.options.rescales_features:
        return scale_features(documents.rows, run.watch, run.context.engine.space, centred=len(checked.task.parts) < 2)
    return ScaledRows(documents.rows, np.ones(documents.rows.n_features), np.zeros(documents.rows.n_features), False)


def _chosen(checked: SeveralTask, scaled: ScaledRows, names: SparseRows, run: Run) -> _Choice:
    """The solutions that make the model; raises Stopped."""
    options, n_labels = checked.options, len(checked.classes)
    whole = checked.whole_problem(scaled.rows)
    with run.scheduler(scaled.rows) as scheduler:
        solved = partial(_solved, checked, scheduler, whole, run.watch)
        if isinstance(options, SvmOptions):
            return solved("svm", [options] * n_labels, WHOLE)
        if isinstance(options, AutoOptions):
            if is_solvable(checked, whole.rows):
                return _ridge(checked, scheduler, whole, names, options.seconds, run.watch)
            smooth = SvmOptions(lambda_=_SMOOTHING / checked.n_labeled, tolerance=options.tolerance)
            return _svm_in_time(partial(solved, "svm"), smooth, n_labels, options.seconds, run.watch)
        assert isinstance(options, TsvmOptions)
        before, rest = WHOLE.between(0.0, _FIRST), WHOLE.between(_FIRST, 1.0)
        supervised = SvmOptions(lambda_=options.lambda_, tolerance=options.tolerance)
        first = solved("svm", [supervised] * n_labels, before if whole.n_unlabeled else WHOLE)
        if not whole.n_unlabeled:
            return first
        known = checked.known_fractions()
        fractions = first.fit.fractions if known is None else known
        own = [
            options.model_copy(update={"positive_fraction": each, "class_fractions": None})
            for each in fractions.tolist()
        ]
        return solved("tsvm", own, rest)


def _names(checked: SeveralTask, documents: Compact, scaled: ScaledRows) -> SparseRows:
    """The names of labels in the columns of the scaled rows."""
    columns = np.searchsorted(documents.features, checked.class_names.indices).astype(np.uint32)
    return SparseRows(
        checked.class_names.indptr,
        columns,
        (checked.class_names.values * scaled.scales[columns]).astype(np.float32),
        len(documents.features),
    )


def _ridge(
    checked: SeveralTask,
    scheduler: Scheduler,
    whole: Problem,
    names: SparseRows,
    seconds: float | None,
    watch: Watch,
) -> _Choice:
    """Ridge regression, with the directions that documents share where there is time to find them; raises Stopped."""
    directions = None
    with watch.until(None if seconds is None else _DIRECTIONS * seconds) as deadline:
        directions = find_directions(whole, scheduler, WHOLE.between(0.0, _DIRECTIONS), watch)
    member, chosen = solve_ridge(checked, scheduler, whole, directions, names, WHOLE.between(_DIRECTIONS, 1.0), watch)
    fit = fit_labels(member.held_out, checked.known, member.scores, watch, drawn=checked.drawn)
    return _Choice("ridge", member, fit, {**chosen, **time_report(seconds, tried=not deadline.over)})


def _svm_in_time(
    solved: Callable[[Sequence[LinearOptions], Span], _Choice],
    options: SvmOptions,
    n_labels: int,
    seconds: float | None,
    watch: Watch,
) -> _Choice:
    """Supervised SVMs, solved to the tolerance where there is time; however short it is, a rough solution is waited
    for. Raises Stopped.
    """
    if seconds is None:
        return solved([options] * n_labels, WHOLE)
    rough = options.model_copy(update={"tolerance": max(options.tolerance, FOLD_TOLERANCE)})
    found = solved([rough] * n_labels, WHOLE.between(0.0, 0.5))
    with watch.until(seconds) as deadline:
        found = solved([options] * n_labels, WHOLE.between(0.5, 1.0))
    return found._replace(report=time_report(seconds, solved=not deadline.over))


def _solved(
    checked: SeveralTask,
    scheduler: Scheduler,
    whole: Problem,
    watch: Watch,
    method: str,
    options: Sequence[LinearOptions],
    span: Span,
) -> _Choice:
    member = solve_labels(checked, scheduler, whole, options, span)
    return _Choice(
        method, member, fit_labels(member.held_out, checked.known, member.scores, watch, drawn=checked.drawn), {}
    )


def _calibration(checked: SeveralTask, choice: _Choice) -> LabelCalibration:
    """Sigmoids of scores as they are, and the thresholds by which F1 is expected to be largest."""
    fit, member = choice.fit, choice.member
    known = member.scores if len(member.scores) else np.nan_to_num(member.held_out)
    thresholds = best_thresholds(expit(fit.slopes * known + fit.offsets))
    slopes = fit.slopes / member.spread.deviation
    return LabelCalibration(slopes, fit.offsets - slopes * member.spread.mean, thresholds)


def _training(
    checked: SeveralTask,
    documents: Compact,
    scaled: ScaledRows,
    choice: _Choice,
    run: Run,
    scale: ValueScale,
) -> Training:
    """The outcome when all is solved; the observer gets a last report."""
    task, results, watch = checked.task, choice.member.results, run.watch
    decisions = [scaled.on_original(each.decision) for each in results if isinstance(each.decision, Linear)]
    calibration = _calibration(checked, choice)
    model = replace(
        model_of(documents, checked.order, task.rows.n_features, checked.classes, decisions), calibration=calibration
    )
    scores = unlabeled_scores(results)
    trace = [point for result in results for point in result.trace]
    watch.end(trace[-1] if trace else watch.latest)
    statuses = [result.status for result in results]
    held_out = choice.member.held_out * choice.member.spread.deviation + choice.member.spread.mean
    return Training(
        model=model,
        unlabeled=checked.unlabeled,
        scores=scores,
        probabilities=model.probabilities(scores),
        objective=sum(result.objective for result in results),
        status=reduce(Status.worse, statuses),
        warnings=[
            *scale_warnings(checked.options, statuses, scale, task.names, checked.n_labeled),
            *_few_warnings(checked),
            *time_warnings(choice.report),
        ],
        trace=[watch.of_all(point) for point in trace],
        passes=run.counter.passes,
        report=_report(checked, documents, choice, calibration, held_out),
        range_remedy=scale.remedy(task.names) or checked.options.range_remedy,
        largest=partial(scale.fault, task.names),
        held_out=held_out,
    )


_NAMED = 10
"""labels that a warning names"""


def _few_warnings(checked: SeveralTask) -> list[str]:
    """Which labels have too few documents to be checked."""
    counts = (checked.known > 0).sum(axis=0)
    few = [str(label) for label, count in zip(checked.classes, counts.tolist(), strict=True) if count < 2]
    if not few:
        return []
    named = ", ".join(map(repr, few[:_NAMED])) + (", …" if len(few) > _NAMED else "")
    return [f"of each of these labels there is one document alone, so that nothing says how well it is found: {named}"]


def _report(
    checked: SeveralTask, documents: Compact, choice: _Choice, calibration: LabelCalibration, held_out: Any
) -> dict[str, Any]:
    """The method, what labels left out say of it, and the figures of each label."""
    left_out = np.isfinite(held_out) & (checked.known != 0)
    given = calibration.given(calibration.probabilities(np.nan_to_num(held_out))) & left_out
    counts = LabelConfusion(len(checked.classes))
    counts.add((checked.known > 0) & left_out, given)
    agreement = counts.agreement()
    figures = _by_label(
        checked.classes,
        labeled=(checked.known > 0).sum(axis=0),
        fraction=choice.fit.fractions,
        threshold=calibration.thresholds,
        f1=np.nan_to_num(agreement.f1),
    )
    micro, macro = agreement.micro.f1, agreement.macro.f1
    return {
        "method": choice.method,
        **choice.report,
        **({} if documents.terms is None else {"features": documents.terms.in_words}),
        "labels": figures,
        "held_out": {"f1_micro": micro, "f1_macro": macro},
        "summary": [
            f"of labels that were left out, {agreement.micro.recall:.0%} were found, and "
            f"{agreement.micro.precision:.0%} of those given were right (F1 {micro:.2f} over all, {macro:.2f} in the "
            "mean of the labels)"
        ],
    }


def _by_label(classes: list[str | int], **columns: NDArray[Any]) -> Mapping[str, dict[str, Any]]:
    """Figures of labels as JSON, by label."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {str(label): dict(zip(columns, row, strict=True)) for label, row in zip(classes, rows, strict=True)}
