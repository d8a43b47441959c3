"""``auto`` of documents of several parts: models of each part alone and of all side by side, whose scores are added.

Few labels do not say reliably which of these is best. Their mistakes differ, so that their sum is about as good as the best of them, or better. What
labels left out do say goes into the weights: a part that knows little counts little, as words do where texts are short.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.documents.space import MEMORY, Space
from core.engine.runner import Sweeper
from core.numerics.elementary import exp
from core.options.auto import AutoOptions
from core.problem.result import Linear, Result, Status
from core.progress import Part
from core.selection.auto import Selection, auto
from core.selection.comparison import Judgement, judge
from core.selection.data import SelectionData
from core.selection.frequent_features import with_features
from core.validation.solution_calibration import calibration_of
from core.watch import Watch

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_SHARPNESS = 4.0
"""logarithm by which a weight falls for each nat by which a label left out is less likely. Measured on texts with their vectors: with 0 a part that
knows little spoils the sum, with 12 few lucky labels decide; between 3 and 5 nothing changes"""
TOGETHER = "together"
"""name in the report: of the sum as an algorithm, and of the model of all parts side by side"""


class PartsTask(NamedTuple):
    """Documents of several parts, and what is asked of a selection over them."""

    rows: SparseRows
    """the labeled ones first"""
    parts: Mapping[str, NDArray[np.int64]]
    """columns of each part, ascending, by name; at least two have any"""
    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,)"""
    classes: Sequence[str | int]
    options: AutoOptions
    given: Vector | None
    """class fractions, shape (n_classes,), if they are known"""
    data_of: Callable[[SparseRows, Watch], SelectionData]
    """the data of a selection over rows with some of the columns"""
    sweeper_of: Callable[[Watch], Callable[[SparseRows], Sweeper]]
    watch_of: Callable[[Part], Watch]
    """a watch over a part of the work"""
    space: Space = MEMORY
    """where copies of the rows lie"""


class _Member(NamedTuple):
    """A model of some of the columns."""

    name: str
    columns: NDArray[np.int64]
    selection: Selection
    size: float
    """mean distance of the scores from their medians, by which they are divided"""
    judgement: Judgement
    """by labels left out, at the class fractions"""


def auto_of_parts(task: PartsTask) -> Selection:
    """Select a method for each part alone and for all side by side, and add their scores; raises as ``auto``.

    Scores are brought to one size, then weighed by how likely they make a label left out, at the class fractions. All models are linear, and so is
    their sum.
    """
    columns = {name: own for name, own in task.parts.items() if len(own)}
    columns[TOGETHER] = np.concatenate(list(columns.values()))
    members = [_member(task, name, own, Part(at / len(columns), (at + 1) / len(columns))) for at, (name, own) in enumerate(columns.items())]
    weights = _weights(members)
    sizes = weights / np.array([member.size for member in members])
    results = [_sum_of(task, members, sizes, column) for column in range(len(members[0].selection.results))]
    held_out = np.asarray(sum(size * member.selection.held_out for size, member in zip(sizes, members, strict=True)))
    fractions = _fractions(members, weights)
    left_out = np.isfinite(held_out).all(axis=1)
    likelier = judge(held_out[left_out], task.class_indices[left_out]).likelier
    calibrate = partial(calibration_of, results, held_out, task.class_indices, len(task.classes), fractions, task.watch_of(Part(1.0, 1.0)))
    return Selection(results, calibrate, _report(task, members, weights, fractions), held_out, likelier, fractions)


def _member(task: PartsTask, name: str, columns: NDArray[np.int64], part: Part) -> _Member:
    watch = task.watch_of(part)
    data = task.data_of(_with_columns(task, columns, watch), watch)
    data = replace(data, prefixes=[f"part={name}/{prefix}" for prefix in data.prefixes])
    found = auto(task.sweeper_of(watch), data, task.classes, task.options, task.given, watch, linear=True)
    of_all = [replace(each, trace=tuple(point._replace(fraction=part.at(point.fraction)) for point in each.trace)) for each in found.results]
    left_out = data.left_out
    judgement = judge(found.held_out[left_out], data.class_indices[left_out], found.fractions)
    return _Member(name, columns, found._replace(results=of_all), _size(found), judgement)


def _with_columns(task: PartsTask, columns: NDArray[np.int64], watch: Watch) -> SparseRows:
    if len(columns) == task.rows.n_features:
        return task.rows
    kept = np.zeros(task.rows.n_features, bool)
    kept[columns] = True
    return with_features(task.rows, kept, watch, task.space)


def _size(found: Selection) -> float:
    """Mean distance from the median of a column, over all documents whose label the model was not told."""
    unlabeled = np.column_stack([result.unlabeled_scores for result in found.results])
    scores = np.concatenate([unlabeled, found.held_out[np.isfinite(found.held_out).all(axis=1)]])
    size = float(np.abs(scores - np.median(scores, axis=0)).mean()) if len(scores) else 0.0
    return size if 0 < size < np.inf else 1.0


def _weights(members: Sequence[_Member]) -> Vector:
    """shape (n_members,), summing to 1; equal where no label is left out."""
    n_labels = int(np.count_nonzero(np.isfinite(members[0].selection.held_out).all(axis=1)))
    log_likelihoods = np.array([member.judgement.log_likelihood for member in members])
    if not n_labels or not np.isfinite(log_likelihoods).all():
        return np.full(len(members), 1 / len(members))
    weights = exp(_SHARPNESS * (log_likelihoods - log_likelihoods.max()) / n_labels)
    return np.asarray(weights / weights.sum())


def _sum_of(task: PartsTask, members: Sequence[_Member], sizes: Vector, column: int) -> Result:
    """The sum of the members' solutions of one two-class problem."""
    coefficients, intercept = np.zeros(task.rows.n_features), 0.0
    results = [member.selection.results[column] for member in members]
    for size, member, result in zip(sizes.tolist(), members, results, strict=True):
        assert isinstance(result.decision, Linear)
        coefficients[member.columns] += size * result.decision.coefficients
        intercept += size * result.decision.intercept
    return Result(
        Linear(coefficients, intercept),
        np.asarray(sum(size * result.unlabeled_scores for size, result in zip(sizes.tolist(), results, strict=True))),
        sum(size * result.objective for size, result in zip(sizes.tolist(), results, strict=True)),
        reduce(Status.worse, (result.status for result in results)),
        tuple(point for result in results for point in result.trace),
        sum(result.passes for result in results),
    )


def _fractions(members: Sequence[_Member], weights: Vector) -> Vector | None:
    """Class fractions, shape (n_classes,): the mean of the members'; None without unlabeled documents."""
    found = [member.selection.fractions for member in members]
    known = [fractions for fractions in found if fractions is not None]
    return np.asarray(sum(weight * each for weight, each in zip(weights.tolist(), known, strict=True))) if known else None


def _report(task: PartsTask, members: Sequence[_Member], weights: Vector, fractions: Vector | None) -> dict[str, Any]:
    reports = [member.selection.report for member in members]
    n_labels = int(np.count_nonzero(np.isfinite(members[0].selection.held_out).all(axis=1)))
    grounds = f"by how likely they make {n_labels} labels left out" if n_labels else "evenly, as no label could be left out"
    shares = ", ".join(f"{_in_words(member.name)} {weight:.0%}" for member, weight in zip(members, weights.tolist(), strict=True))
    why = f"the scores of a model of each part and of one of all parts side by side are added, weighed {grounds}: {shares}"
    return {
        "chosen": {"algorithm": TOGETHER, "lambda": None, "why": why},
        "parts": {
            member.name: {"weight": weight, "log_likelihood": member.judgement.log_likelihood, "right": member.judgement.right, **report["chosen"]}
            for member, weight, report in zip(members, weights.tolist(), reports, strict=True)
        },
        "tried": [{"part": member.name, **tried} for member, report in zip(members, reports, strict=True) for tried in report["tried"]],
        "held_out": {"labels": n_labels} if n_labels else None,
        **({} if fractions is None else {"class_fractions": dict(zip(map(str, task.classes), fractions.tolist(), strict=True)), "estimate": None}),
    }


def _in_words(name: str) -> str:
    return "all side by side" if name == TOGETHER else name
