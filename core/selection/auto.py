"""``algorithm: "auto"``: methods, λ and class fractions are found from the documents and their labels, by cross-validation."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.problem.result import Result, Status, ensure_complete
from core.progress import Part
from core.selection.blocks import Block, Selecting, blocks_of
from core.selection.candidates import Candidate, Wanted, candidates_of
from core.selection.choice import choose
from core.selection.co_validation import co_validate
from core.selection.comparison import judge
from core.selection.report import report_of
from core.selection.stack import Member, stack
from core.selection.subsets import with_frequent_features
from core.validation.calibration import SLOPE, Calibration, calibration_at
from core.validation.solution_calibration import calibration_of
from core.watch import Stopped

Vector = NDArray[np.float64]

_COMPARING = 0.6
"""share of the seconds that a training may take in which candidates are compared"""
_COMPARED, _PREPARED = 0.85, 0.3
"""share of the work that is done when all candidates are known; share of what is left then that candidates take before their solvers are run"""
_TIME_OVER, _STOPPED = "the time was over", "the training was stopped"


class Selection(NamedTuple):
    """What auto ends with."""

    results: list[Result]
    """solutions on the features as they came, one a two-class problem; if stopped, the best iterates"""
    calibrate: Callable[[], Calibration]
    """calibration by the held-out scores; raises Stopped"""
    report: dict[str, Any]
    """what was tried, what it showed, what was selected and why, as JSON"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by the selected method without their labels; NaN where no fold leaves the row out"""
    likelier: bool
    """whether labels left out are likelier by the selected method than if all classes were as likely"""


def auto(task: Selecting) -> Selection:
    """Select methods on labels left out, and solve with them.

    1. In each block of columns the transductive SVM gets the class fractions that core.selection.class_fractions estimates. That also finds whether
       numbers of labels are evidence of them. The supervised SVM gets its λ by cross-validation. Label spreading and kernel ridge regression are
       tried where distances are meaningful, naive Bayes where documents can be bags of terms.
    2. The class fractions are the mean of the estimates of the linear candidates, and of the best one if it is not linear, weighed by labels left
       out. Given ones stand.
    3. Scores of all candidates are added, weighed by labels left out (core.selection.stack). Only one whose model is not linear is selected alone,
       where it predicts them best. A sum is as sure as its members agree (core.selection.co_validation).

    Of many documents the comparison is done with frequent features alone (core.selection.subsets); what is selected has all.
    With a budget of seconds, candidates are tried while there is time, the supervised SVM in any case; then what is selected is solved as far as time
    allows.
    Raises Stopped before anything is selected, and ModelTooLarge.
    """
    blocks = blocks_of(task)
    parts = [Part(place / len(blocks), (place + 1) / len(blocks)) for place in range(len(blocks))]
    found = [_candidates_in_time(task, block, part) for block, part in zip(blocks, parts, strict=True)]
    offered = [each for of_block in found for each in of_block.offered]
    choice = choose([candidate for _, candidate in offered], task.class_indices)
    selected = [_Selected(*offered[place], weight) for place, weight in choice.places]
    # where time ended before any candidate had fractions to estimate, those that are given stand all the same
    fractions = task.given if choice.fractions is None and selected[0].block.data.problems[0].n_unlabeled else choice.fractions
    model = _solutions_in_time(task, selected, fractions)
    left_out = np.isfinite(model.held_out).all(axis=1)
    likelier = judge(model.held_out[left_out], task.class_indices[left_out]).likelier
    taken = choice._replace(fractions=model.fractions, places=[(choice.places[0][0], 1.0)] if model.cut_short else choice.places)
    report = report_of(offered, taken, task.classes, model.agreement, model.cut_short)
    report |= _time(task.options.seconds, tried=not any(of_block.ended for of_block in found), solved=model.solved)
    return Selection(model.results, partial(_calibration, task, model), report, model.held_out, likelier)


class _Model(NamedTuple):
    """What is selected, solved."""

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
    cut_short: str = ""
    """why it is the first candidate alone though a sum was chosen, as the beginning of a sentence; empty if it is what was chosen"""


class _Selected(NamedTuple):
    """A candidate that has a part in the model."""

    block: Block
    candidate: Candidate
    weight: float


class _BlockCandidates(NamedTuple):
    """The candidates of a block that were ready in time."""

    offered: list[tuple[Block, Candidate]]
    ended: bool
    """whether others were not"""


def _candidates_in_time(task: Selecting, block: Block, part: Part) -> _BlockCandidates:
    """The candidates of a block, as a ``part`` of all comparing; raises Stopped. However short the time is, the first is waited for."""
    frequent = with_frequent_features(block.data, task.watch)
    compared = Part(0.0, _COMPARED).part(*part)
    with closing(candidates_of(task.sweeper_of, block.data, frequent, task.given, compared, task.watch, of_parts=bool(block.name))) as candidates:
        ready = [next(candidates)]
        with task.watch.until(None if task.options.seconds is None else _COMPARING * part.stop * task.options.seconds) as deadline:
            try:
                while (candidate := next(candidates, None)) is not None:  # one by one: what is ready before a stop is kept
                    ready.append(candidate)
            except Stopped:
                if not deadline.over:
                    raise
    return _BlockCandidates([(block, candidate) for candidate in ready], deadline.over)


def _time(seconds: float | None, *, tried: bool, solved: bool) -> dict[str, Any]:
    """What the report says of a budget: whether all methods were tried, and the model solved to its tolerance, within these seconds."""
    return {} if seconds is None else {"time": {"seconds": seconds, "all_methods_tried": tried, "solved": solved}}


def _solutions_in_time(task: Selecting, selected: Sequence[_Selected], fractions: Vector | None) -> _Model:
    """What is selected, solved as far as time allows.

    When the time is over the solutions are the best iterates. Where there are none yet, as of what is not linear, the first candidate is waited for.
    After a stop by the observer all solutions are cancelled: what was chosen is not there, though the first candidate may be.
    """
    model: _Model | None = None
    with task.watch.until(task.options.seconds if selected[0].candidate.linear else None) as deadline:
        try:
            model = _solutions(task, selected, fractions)
        except Stopped:
            if not deadline.over:
                raise
    if model is not None and not deadline.over:
        return _cancelled(model) if model.cut_short else model
    over = _TIME_OVER if len(selected) > 1 else ""
    if model is None or not all(np.isfinite(each.unlabeled_scores).all() for each in model.results):
        return _solutions(task, selected[:1], fractions)._replace(solved=len(selected) == 1, cut_short=over)
    results = [replace(each, status=Status.ITERATION_LIMIT if each.status is Status.CANCELLED else each.status) for each in model.results]
    return model._replace(results=results, solved=False, cut_short=over)


def _cancelled(model: _Model) -> _Model:
    return model._replace(results=[replace(each, status=Status.CANCELLED) for each in model.results])


def _solutions(task: Selecting, selected: Sequence[_Selected], fractions: Vector | None) -> _Model:
    """The solutions of what is selected, as one. After a stop those of the first candidate, as far as it came."""
    names = list(dict.fromkeys(each.block.name for each in selected))
    solved: dict[int, list[Result]] = {}
    try:
        for number, name in enumerate(names):
            own = {place: each for place, each in enumerate(selected) if each.block.name == name}
            solved |= _solved(task, own, fractions, Part(_COMPARED, 1.0).part(number / len(names), (number + 1) / len(names)))
            ensure_complete(result for results in solved.values() for result in results)
        if len(selected) > 1:
            return _summed(task, [_member(task, each, solved[place], fractions) for place, each in enumerate(selected)], fractions)
    except Stopped:
        if not solved:
            raise
    first, cut_short = selected[0], _STOPPED if len(selected) > 1 else ""
    results = [first.block.over_all_columns(result, task.rows.n_features) for result in solved[0]]
    return _Model(results, first.candidate.held_out, fractions, cut_short=cut_short)


def _summed(task: Selecting, members: Sequence[Member], fractions: Vector | None) -> _Model:
    """The sum of members, as sure as they agree; raises Stopped. Class fractions that were given stand."""
    pooled = stack(members, task.rows.n_features)
    validated = None if fractions is None else co_validate(pooled, members, task.class_indices, fractions, task.watch)
    if validated is None:
        return _Model(*pooled, fractions, summed=True)
    found = validated.fractions if task.given is None else task.given
    return _Model(*validated.sum, found, summed=True, agreement=validated.agreement)


def _solved(task: Selecting, selected: Mapping[int, _Selected], fractions: Vector | None, part: Part) -> dict[int, list[Result]]:
    """The solutions of candidates of one block, on its features as they came, by position; raises Stopped."""
    block = next(iter(selected.values())).block
    with task.sweeper_of(block.data.scaled.rows) as sweeper:
        wanted = Wanted(sweeper, block.data, fractions, task.options.tolerance, part.part(0.0, _PREPARED))
        solvers = {
            f"{block.data.prefixes[column]}{f'addend={place + 1}/' if place else ''}": solver
            for place, each in selected.items()
            for column, solver in enumerate(each.candidate.solvers(wanted))
        }
        results = [block.on_original_features(result) for result in sweeper.run(solvers, part.part(_PREPARED, 1.0))]
    n_problems = len(block.data.problems)
    return {place: results[number * n_problems : (number + 1) * n_problems] for number, place in enumerate(selected)}


def _member(task: Selecting, selected: _Selected, results: list[Result], fractions: Vector | None) -> Member:
    """The part of a candidate in the stack; raises Stopped."""
    block, candidate = selected.block, selected.candidate
    calibration = calibration_of(results, candidate.held_out, task.class_indices, len(task.classes), fractions, task.watch)
    return Member(selected.weight, block.columns, results, candidate.held_out, calibration, candidate.generative, block.data.dense)


def _calibration(task: Selecting, model: _Model) -> Calibration:
    """The calibration of the solutions; raises Stopped. Scores of a sum are made of probabilities and are not fitted to the same labels again."""
    n_columns = len(model.results)
    if not model.summed or model.fractions is None:
        return calibration_of(model.results, model.held_out, task.class_indices, len(task.classes), model.fractions, task.watch)
    scores = np.column_stack([result.unlabeled_scores for result in model.results])
    return calibration_at(np.full(n_columns, SLOPE), np.zeros(n_columns), scores, model.fractions, task.watch)
