"""The algorithm ``auto``: it finds methods, λ and class fractions by cross-validation of the labels."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import Steps, Vector
from core.kernels.gamma import resolve_kernel
from core.problem import Result, Status, ensure_complete, unlabeled_scores
from core.progress import WHOLE, Phase, Span, Stopped
from core.selection.candidates import Candidate, ModelSpec, Selecting, SelectionBlock, blocks_of, candidates_of
from core.selection.data import with_frequent_features
from core.selection.methods.kernel_regression import KernelRegression
from core.selection.posterior import bounded_fractions
from core.selection.prediction import judge
from core.selection.report import Alone, Offered, report_of, time_report
from core.selection.stack import (
    KEPT_OF_ANSWERS,
    KEPT_OF_COUNTS,
    Member,
    Stack,
    choose,
    co_validate,
    met_fractions,
    stack,
)
from core.validation.calibration import SLOPE, Calibration, calibration_at, fit_calibration

_COMPARING = 0.6
"""share of the seconds that a training may take in which candidates are compared"""
_COMPARED, _PREPARED = 0.85, 0.3
"""share of the work that is done when all candidates are known; share of what is left then that candidates take before
their solvers are run"""


class Selection(NamedTuple):
    """The outcome of a selection."""

    results: list[Result]
    """solutions on the features as they came, one a two-class problem; if stopped, the best iterates"""
    calibrate: Callable[[], Calibration]
    """calibration by the held-out scores; raises Stopped"""
    report: dict[str, Any]
    """what was tried, what it showed, what was selected and why, as JSON"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by the selected method without their labels; NaN where
    no fold leaves the row out"""
    likelier: bool
    """whether labels left out are likelier by the selected method than if all classes were as likely"""
    as_new: bool
    """whether scores of the results are as if each unlabeled row were new, as those of naive Bayes of terms"""


def auto(task: Selecting) -> Selection:
    """Select methods on labels left out, and solve with them.

    1. In each block of columns the transductive SVM gets the class fractions that core.selection.class_fractions
       estimates. That also finds whether numbers of labels are evidence of them. The supervised SVM gets its λ by
       cross-validation. Label spreading and kernel ridge regression are tried where distances are meaningful, naive
       Bayes where documents can be bags of terms.
    2. The class fractions are the mean of the estimates of the candidates, weighed by labels left out, and by how many
       of the unlabeled documents have what a candidate learned from. Given ones stand. Those of three classes and more
       meet the probabilities of the sum.
    3. Scores of all candidates are added, weighed by labels left out (core.selection.stack). A sum is as sure as its
       members agree (core.selection.stack). One that is not linear is a kernel model of its scores
       (core.selection.methods.kernel_regression).

    Of many documents the comparison is done with frequent features alone (core.selection.data); what is selected has
    all. With a budget of seconds, candidates are tried while there is time, the supervised SVM in any case; then what
    is selected is solved as far as time allows. Raises Stopped before anything is selected, and ModelTooLarge.
    """
    blocks = blocks_of(task)
    spans = WHOLE.equal(len(blocks))
    found = [_candidates_in_time(task, block, span) for block, span in zip(blocks, spans, strict=True)]
    offered = [each for of_block, _ in found for each in of_block]
    choice = choose([candidate for _, candidate in offered], [block.complete for block, _ in offered])
    selected = [_Selected(*offered[place], weight) for place, weight in choice.places]
    fractions = choice.fractions
    if fractions is None and selected[0].block.data.problems[0].n_unlabeled:
        fractions = task.given  # time ended before any candidate had estimated them
    stand = len(task.classes) == 2 or task.given is not None
    kept = 1.0 if stand else KEPT_OF_COUNTS if choice.counted else KEPT_OF_ANSWERS
    model = _solutions_in_time(task, selected, _Estimate(fractions, kept))
    left_out = np.isfinite(model.held_out).all(axis=1)
    likelier = judge(model.held_out[left_out], task.class_indices[left_out]).likelier
    choice = choice._replace(fractions=model.fractions)
    if model.alone is not None:
        choice = choice._replace(places=[(choice.places[0][0], 1.0)])
    tried = not any(ended for _, ended in found)
    report = report_of(offered, choice, task.classes, model.agreement, model.alone, supervised=task.supervised)
    report |= time_report(task.options.seconds, tried=tried, solved=model.solved)
    as_new = any(each.candidate.generative and not each.block.data.dense for each in selected)
    return Selection(model.results, partial(_calibration, task, model), report, model.held_out, likelier, as_new)


class _Estimate(NamedTuple):
    """The class fractions before there is a model."""

    fractions: Vector | None
    """shape (n_classes,); None without unlabeled documents"""
    kept: float
    """share of the log-odds that bring the model to them; 1 if they stand"""


class _Model(NamedTuple):
    """The selected candidates, solved."""

    results: list[Result]
    held_out: NDArray[np.float64]
    fractions: Vector | None
    """class fractions that its mean probabilities have"""
    summed: bool = False
    """whether it is a sum"""
    agreement: float | None = None
    """of a sum: share of the unlabeled documents on which members of different kinds agree"""
    solved: bool = True
    """whether the time was enough"""
    alone: Alone | None = None
    """why it is the first candidate alone though a sum was chosen; None if it is what was chosen"""

    def ending(self, *statuses: Status, to: Status) -> "_Model":
        """This model, with another status where the status of a result is one of these."""
        return self._replace(
            results=[replace(each, status=to) if each.status in statuses else each for each in self.results]
        )


class _Selected(NamedTuple):
    """A candidate that has a part in the model."""

    block: SelectionBlock
    candidate: Candidate
    weight: float


def _candidates_in_time(task: Selecting, block: SelectionBlock, span: Span) -> tuple[list[Offered], bool]:
    """The candidates of a block, as a ``span`` of all comparing, and whether time ended before others; raises Stopped.

    However short the time is, the first is waited for.
    """
    frequent = with_frequent_features(block.data, task.watch)
    compared, several = Span(0.0, _COMPARED).between(*span), bool(block.name) or task.linear
    seconds = None if task.options.seconds is None else _COMPARING * span.stop * task.options.seconds
    candidates = candidates_of(
        task.scheduler_of, block.data, frequent, task.given, compared, task.watch, several, task.supervised
    )
    with closing(candidates):
        ready = [next(candidates)]
        with task.watch.until(seconds) as deadline:
            for candidate in candidates:  # one by one: those that are ready before a stop are kept
                ready.append(candidate)  # noqa: PERF402
    return [(block, candidate) for candidate in ready], deadline.over


def _solutions_in_time(task: Selecting, selected: Sequence[_Selected], estimate: _Estimate) -> _Model:
    """Solve the selected candidates as far as time allows.

    When the time is over the solutions are the best iterates. Where there are none yet, as of what is not linear, the
    first candidate is waited for. After a stop by the observer all solutions are cancelled: what was chosen is not
    there, though the first candidate may be.
    """
    model: _Model | None = None
    with task.watch.until(task.options.seconds) as deadline:
        model = _solutions(task, selected, estimate)
    if model is not None and not deadline.over:
        return model if model.alone is None else model.ending(*Status, to=Status.CANCELLED)
    alone = Alone.TIME_OVER if len(selected) > 1 else None
    if model is None or not all(np.isfinite(each.unlabeled_scores).all() for each in model.results):
        return _solutions(task, selected[:1], estimate)._replace(solved=len(selected) == 1, alone=alone)
    return model.ending(Status.CANCELLED, to=Status.ITERATION_LIMIT)._replace(solved=False, alone=alone)


def _solutions(task: Selecting, selected: Sequence[_Selected], estimate: _Estimate) -> _Model:
    """The solutions of the selected candidates, as one model. After a stop the first candidate as far as it came."""
    names = list(dict.fromkeys(each.block.name for each in selected))
    linear = all(each.candidate.linear for each in selected)
    *spans, last = Span(_COMPARED, 1.0).equal(len(names) + (not linear)) + [WHOLE] * linear
    solved: dict[int, list[Result]] = {}
    try:
        for name, span in zip(names, spans, strict=True):
            own = {place: each for place, each in enumerate(selected) if each.block.name == name}
            solved |= _solved(task, own, estimate.fractions, span)
            ensure_complete(result for results in solved.values() for result in results)
        if len(selected) > 1 or not linear:
            members = [_member(task, each, solved[place], estimate.fractions) for place, each in enumerate(selected)]
            pooled = stack(members, task.rows.n_features)
            if not linear:
                pooled = _modelled(task, selected[0].block, pooled, last)
            return _summed(task, pooled, members, estimate, selected[0].block.data.bounds)
    except Stopped:
        if not (solved and selected[0].candidate.linear):
            raise
    first, alone = selected[0], Alone.STOPPED if len(selected) > 1 else None
    results = [first.block.over_all_columns(result, task.rows.n_features) for result in solved[0]]
    return _Model(results, first.candidate.held_out, estimate.fractions, alone=alone)


def _summed(
    task: Selecting,
    pooled: Stack,
    members: Sequence[Member],
    estimate: _Estimate,
    bounds: NDArray[np.float64] | None,
) -> _Model:
    """The sum of members, as sure as they agree; raises Stopped. Fractions that do not stand meet its probabilities,
    within ``bounds``.
    """
    fractions = estimate.fractions
    if fractions is None:
        return _Model(*pooled, fractions, summed=True)
    if estimate.kept < 1.0:
        fractions = bounded_fractions(met_fractions(pooled, members, fractions, estimate.kept, task.watch), bounds)
    validated = co_validate(pooled, members, task.class_indices, fractions, task.watch)
    if validated is None:
        return _Model(*pooled, fractions, summed=True)
    return _Model(*validated.sum, fractions, summed=True, agreement=validated.agreement)


def _modelled(task: Selecting, block: SelectionBlock, pooled: Stack, span: Span) -> Stack:
    """The sum with a kernel model of its scores, learned for labeled rows from scores without their labels; raises
    Stopped.
    """
    rows = block.data.scaled.rows
    targets = np.concatenate([pooled.held_out, unlabeled_scores(pooled.results)])
    kernel = resolve_kernel("rbf", "median", 3, 0.0, rows, task.watch)
    regression = KernelRegression(block.data, targets, kernel, task.watch)
    solvers: dict[Phase, Callable[[], Steps]] = {
        phase: partial(regression.steps, column) for column, phase in enumerate(block.data.phases)
    }
    with task.scheduler_of(rows) as scheduler:
        found = scheduler.run(solvers, span)
    ensure_complete(found)
    return pooled._replace(results=[block.on_original_features(result) for result in found])


def _solved(
    task: Selecting, selected: Mapping[int, _Selected], fractions: Vector | None, span: Span
) -> dict[int, list[Result]]:
    """The solutions of candidates of one block, on its features as they came, by position; raises Stopped."""
    block = next(iter(selected.values())).block
    with task.scheduler_of(block.data.scaled.rows) as scheduler:
        spec = ModelSpec(scheduler, block.data, fractions, task.options.tolerance, span.between(0.0, _PREPARED))
        solvers = {
            phase.to("addend", place + 1) if place else phase: solver
            for place, each in selected.items()
            for phase, solver in zip(block.data.phases, each.candidate.solvers(spec), strict=True)
        }
        results = [
            block.on_original_features(result) for result in scheduler.run(solvers, span.between(_PREPARED, 1.0))
        ]
    n_problems = len(block.data.problems)
    return {place: results[number * n_problems : (number + 1) * n_problems] for number, place in enumerate(selected)}


def _member(task: Selecting, selected: _Selected, results: list[Result], fractions: Vector | None) -> Member:
    """The part of a candidate in the stack; raises Stopped."""
    block, candidate = selected.block, selected.candidate
    scores = unlabeled_scores(results)
    calibration = fit_calibration(candidate.held_out, task.class_indices, scores, fractions, task.watch)
    return Member(
        selected.weight, block.columns, results, candidate.held_out, calibration, candidate.generative, block.data.dense
    )


def _calibration(task: Selecting, model: _Model) -> Calibration:
    """The calibration of the solutions; raises Stopped.

    Scores of a sum are made of probabilities and are not fitted to the same labels again.
    """
    scores, n_columns = unlabeled_scores(model.results), len(model.results)
    if not model.summed or model.fractions is None:
        return fit_calibration(model.held_out, task.class_indices, scores, model.fractions, task.watch)
    return calibration_at(np.full(n_columns, SLOPE), np.zeros(n_columns), scores, model.fractions, task.watch)
