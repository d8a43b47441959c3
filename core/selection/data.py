"""The data of a model selection: scaled rows, two-class problems, and folds of the labels.

Methods are compared, and fractions estimated, by parts of them: the frequent features of many documents, and the
labeled documents alone. The selected model has all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw, checked_drawn
from core.documents.rows import MEMORY, FullRows, Pages, Space, SparseRows
from core.documents.term_weights import distances_apply, equally_long, outweighing
from core.numerics.vectors import dot
from core.one_vs_rest import n_classes_of, phases_of, positives_of
from core.options.base import TrainingSize
from core.problem import Linear, Problem
from core.progress import Checkpoint, Phase
from core.selection.log_evidence import LabelCounts, is_balanced, is_planned
from core.selection.registry import MANY_ROWS
from core.validation.folds import folds_of

_SLICE = 1 << 21
_NEAR = 0.05
"""distance of the mean square norm from 1 within which rows that are not centred are left as they are"""
_CONSTANT = 1e-12
"""share of a feature's mean square up to which its variance is rounding"""


class ScaledRows(NamedTuple):
    """Centred rows, their features multiplied by scales; the mean square norm of a row is 1, or within _NEAR of it
    where the rows were left as they came.
    """

    rows: SparseRows
    scales: NDArray[np.float64]
    """shape (n_features,); coefficients on ``rows`` times these are coefficients on the original rows"""
    centre: NDArray[np.float64]
    """shape (n_features,): what is taken off the original rows; zeros if nothing is"""
    equalised: bool
    """whether every feature has a scale of its own"""

    def on_original(self, decision: Linear) -> Linear:
        """A decision over these rows as one over the rows as they came."""
        coefficients = decision.coefficients * self.scales
        return Linear(coefficients, decision.intercept - dot(coefficients, self.centre))


def scale_features(
    rows: SparseRows, checkpoint: Checkpoint, space: Space = MEMORY, *, centred: bool = True
) -> ScaledRows:
    """Scale the rows for a selection.

    With ``centred``, rows that store every feature are centred by the features' means. What all rows have in common
    tells nothing apart, and would be most of their squares: temperatures around 300 would have one scale with what
    moves them by 10. Text is not: its zeros would be zeros no more. Few features may carry nearly all of the squares,
    as counts do beside shares: the participation ratio ``(Σ m)² / Σ m²`` of the features' mean squares m is then at
    most 4. A regulariser would leave the other features out, so each is divided by its root mean square. Text keeps the
    proportions of its terms, of which rare ones would be blown up: numbers beside terms of one length, as that of the
    text, are brought to the root mean square of the largest term.
    ``checkpoint`` is called between slices of some million nonzeros; what it raises ends the work. Values that are
    scaled lie in ``space``.
    """
    energies, centre = mean_squares(rows, checkpoint, centred=centred and isinstance(rows, FullRows))
    total = float(energies.sum())
    if not (np.isfinite(total) and total > 0):
        return ScaledRows(rows, np.ones(rows.n_features), np.zeros(rows.n_features), False)
    scales, few = np.ones(rows.n_features), outweighing(energies)
    equalised = len(few) > 0 and not _are_beside_terms(rows, few, checkpoint)
    if equalised:
        scales = np.where(energies > 0, 1.0, 0.0) / np.sqrt(np.where(energies > 0, energies, 1.0))
    elif len(few):
        scales[few] = np.sqrt(np.delete(energies, few).max() / energies[few])
    norm = float((energies * scales**2).sum())
    if not (len(few) or centre.any()) and abs(norm - 1.0) <= _NEAR:
        return ScaledRows(rows, scales, centre, False)
    scales = scales / np.sqrt(norm)
    values = space.zeros(len(rows.values), rows.values.dtype)
    pages = Pages(values)
    for part in _slices(rows):
        columns = rows.columns(part.start, part.stop)
        values[part] = (rows.values[part] - centre[columns]) * scales[columns]
        pages.release(part.start, part.stop)
        checkpoint()
    return ScaledRows(rows._replace(values=values), scales, centre, equalised)


def _are_beside_terms(rows: SparseRows, few: NDArray[np.int64], checkpoint: Checkpoint) -> bool:
    """Whether rows are bags of terms of one length without a few features, which have the lesser part of the values."""
    if distances_apply(rows.n_rows, rows.n_features, rows.n_nonzeros):
        return False
    terms = np.ones(rows.n_features, bool)
    terms[few] = False
    squares, n_values = np.zeros(rows.n_rows), 0
    for start, stop in rows.slices(_SLICE):
        held = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
        own = terms[rows.columns(held.start, held.stop)]
        values = rows.values[held][own].astype(np.float64)
        squares[start:stop] = np.bincount(rows.between(start, stop).owners[own], values * values, stop - start)
        n_values += len(values)
        checkpoint()
    return 2 * n_values > rows.n_nonzeros and equally_long(squares)


def mean_squares(
    rows: SparseRows, checkpoint: Checkpoint, *, centred: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each feature the mean square about its centre, and the centre: the mean or, if not ``centred``, 0."""
    squares, centre = np.zeros(rows.n_features), np.zeros(rows.n_features)
    for part in _slices(rows):
        columns, values = rows.columns(part.start, part.stop), rows.values[part].astype(np.float64)
        squares += np.bincount(columns, values**2, rows.n_features)
        if centred:
            centre += np.bincount(columns, values, rows.n_features)
        checkpoint()
    squares /= max(1, rows.n_rows)
    centre /= max(1, rows.n_rows)
    variances = squares - centre * centre
    return np.where(variances > _CONSTANT * squares, variances, 0.0), centre


def _slices(rows: SparseRows) -> Iterator[slice]:
    """The nonzeros, some million at a time."""
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    yield from (slice(start, min(start + _SLICE, last)) for start in range(first, last, _SLICE))


FEWEST = 3
"""labels of each class from which on a model can be had of as many of each"""


@dataclass(frozen=True)
class SelectionData:
    """Rows, the labeled ones first, and their two-class problems: of two classes one, for the second; of more one a
    class.
    """

    scaled: ScaledRows
    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,): classes of the labeled rows, from 0"""
    folds: NDArray[np.int64]
    """shape (n_labeled,): see core.validation.folds"""
    problems: list[Problem]
    """over the scaled rows"""
    phases: list[Phase]
    """what solvers of each problem are run for"""
    drawn: NDArray[np.int8]
    """shape (n_labeled,): how each label was come by, values of core.documents.drawn.Draw"""
    dense: bool
    """whether the rows are numbers, between which distances are meaningful; of a part of the rows or features, whether
    the whole are"""
    space: Space = MEMORY
    """where copies of the rows lie"""
    bounds: NDArray[np.float64] | None = None
    """shape (n_classes, 2): the least and the largest fraction of each class, where something is known"""
    columns: NDArray[np.int64] | None = None
    """of its features among those of the data that it is a part of, ascending; None if it has all of them"""

    @classmethod
    def of(
        cls,
        rows: SparseRows,
        class_indices: NDArray[np.integer[Any]],
        classes: Sequence[str | int],
        seed: int,
        checkpoint: Checkpoint = lambda: None,
        drawn: NDArray[np.int8] | None = None,
        space: Space = MEMORY,
        *,
        centred: bool = True,
        bags: bool = False,
        bounds: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> Self:
        """The data of these rows; ``seed`` decides the folds. ``checkpoint`` is called between slices of the work,
        which ends when it raises. ``centred`` as in scale_features. ``bags``: rows are bags of terms, however many
        values they have. ``weights``, shape (n_labeled,), are those of the labels, by default 1.
        """
        scaled = scale_features(rows, checkpoint, space, centred=centred)
        positives = positives_of(len(classes))
        costs = np.ones(rows.n_rows)
        if weights is not None:
            costs[: len(weights)] = weights
        whole = Problem.of(scaled.rows, np.ones(len(class_indices)), costs, seed)
        # all share the array of costs, a number a row
        problems = [replace(whole, y=np.where(class_indices == positive, 1.0, -1.0)) for positive in positives]
        folds, drawn = folds_of(class_indices, seed), checked_drawn(drawn, len(class_indices))
        dense = not bags and distances_apply(rows.n_rows, rows.n_features, rows.n_nonzeros)
        return cls(scaled, class_indices, folds, problems, phases_of(classes), drawn, dense, space, bounds)

    def over_all_features(self, coefficients: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Coefficients of its features, shape (its number of them + 1,), the bias last, as coefficients of all
        ``n_features``: 0 for the others.
        """
        if self.columns is None:
            return coefficients
        found = np.zeros(n_features + 1)
        found[self.columns], found[-1] = coefficients[:-1], coefficients[-1]
        return found

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return n_classes_of(len(self.problems))

    @property
    def size(self) -> TrainingSize:
        """Its size, from which it is seen which methods apply."""
        rows = self.scaled.rows
        return TrainingSize(rows.n_rows, len(self.class_indices), rows.n_nonzeros, rows.n_features, self.n_classes)

    @property
    def are_bags(self) -> bool:
        """Whether the rows may be bags of terms: texts as they are, or other counts that are not negative."""
        return not (self.dense or self.scaled.equalised) and float(self.scaled.rows.values.min(initial=0.0)) >= 0

    @property
    def positives(self) -> list[int]:
        """The class of each problem."""
        return positives_of(self.n_classes)

    @property
    def weights(self) -> NDArray[np.float64]:
        """shape (n_labeled,): weight of each label."""
        return self.problems[0].costs[: len(self.class_indices)]

    @property
    def unlabeled_weight(self) -> float:
        """λ' of transductive SVMs: no unlabeled row weighs more than a labeled one."""
        return min(1.0, self.problems[0].n_unlabeled / self.problems[0].n_labeled)

    @property
    def counts_by_origin(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of labels of each class, shape (n_classes,): of a random sample, and of unknown origin; none of the
        latter if they are a plan.
        """
        random, unknown = (
            np.bincount(self.class_indices[self.drawn == draw], minlength=self.n_classes)
            for draw in (Draw.RANDOM, Draw.UNKNOWN)
        )
        return random, unknown * (not self.planned)

    @property
    def counts(self) -> LabelCounts:
        """Numbers of labels of the second of two classes, by origin."""
        random, unknown = self.counts_by_origin
        known = int(random[1]), int(random.sum()), int(unknown[1]), int(unknown.sum())
        return LabelCounts(*known, len(self.class_indices))

    @property
    def planned(self) -> bool:
        """Whether the numbers of labels of unknown origin were somebody's plan."""
        return is_planned(np.bincount(self.class_indices[self.drawn == Draw.UNKNOWN], minlength=self.n_classes))

    @property
    def balanced(self) -> bool:
        """Whether the classes have (nearly) equal numbers of labels."""
        return is_balanced(np.bincount(self.class_indices, minlength=self.n_classes))

    @property
    def surplus(self) -> NDArray[np.bool_]:
        """shape (n_labeled,): labels beyond those that the class with the fewest has, where these are not too few."""
        surplus = np.zeros(len(self.class_indices), bool)
        least = int(np.bincount(self.class_indices, minlength=self.n_classes).min())
        for each in range(self.n_classes if least >= FEWEST else 0):
            surplus[np.flatnonzero(self.class_indices == each)[least:]] = True
        return surplus

    @property
    def n_folds(self) -> int:
        """Number of folds that leave a label out: with one label a class there is none, and nothing to be solved
        without it.
        """
        return int(self.folds.max(initial=-1)) + 1

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """shape (n_labeled,): whether some fold leaves the row out."""
        return np.asarray(self.folds >= 0)


_SHARE = 1 / 2_000
"""share of the rows that must have a feature"""


def with_frequent_features(data: SelectionData, checkpoint: Checkpoint) -> SelectionData:
    """The data without features that only few of many rows have; the same data if there are none.

    Comparing takes some hundred solutions for a class, selecting one. Nearly all terms of texts are in a handful of
    them: they make vectors long, and hardly move what methods are compared by. A sample of the rows would: the more
    unlabeled ones, the better are methods that learn from them. ``checkpoint`` is called between slices of the work;
    what it raises ends it.
    """
    rows = data.scaled.rows
    if rows.n_rows < MANY_ROWS:
        return data
    counts = np.zeros(rows.n_features, np.int64)
    for part in _slices(rows):
        counts += np.bincount(rows.columns(part.start, part.stop), minlength=rows.n_features)
        checkpoint()
    kept = counts >= _SHARE * rows.n_rows
    if kept.all() or not kept.any():
        return data
    return _with_rows(data, with_features(rows, kept, checkpoint, data.space), kept)


def labeled_alone(data: SelectionData, checkpoint: Checkpoint) -> SelectionData:
    """The labeled rows with the features that they have, for methods that learn from no others; the same data if all
    rows are labeled.

    ``checkpoint`` is called between slices of the work; what it raises ends it.
    """
    rows = data.scaled.rows.between(0, len(data.class_indices))
    if rows.n_rows == data.scaled.rows.n_rows:
        return data
    kept = np.zeros(rows.n_features, bool)
    for part in _slices(rows):
        kept[rows.columns(part.start, part.stop)] = True
        checkpoint()
    return _with_rows(data, rows if kept.all() else with_features(rows, kept, checkpoint, data.space), kept)


def _with_rows(data: SelectionData, rows: SparseRows, kept: NDArray[np.bool_]) -> SelectionData:
    """The data with these rows instead, the labeled ones first as before, with some of the features."""
    scaled = data.scaled._replace(rows=rows, scales=data.scaled.scales[kept], centre=data.scaled.centre[kept])
    whole = Problem.of(rows, data.problems[0].y, data.problems[0].costs[: rows.n_rows], data.problems[0].seed)
    return replace(
        data,
        scaled=scaled,
        columns=np.flatnonzero(kept),
        problems=[replace(whole, y=problem.y) for problem in data.problems],
    )


def with_features(
    rows: SparseRows, kept: NDArray[np.bool_], checkpoint: Checkpoint, space: Space = MEMORY
) -> SparseRows:
    """The rows with some of their features alone, a mask of shape (n_features,), which are numbered anew; the copy lies
    in ``space``.
    """
    columns = (np.cumsum(kept) - 1).astype(np.uint32)
    indptr = np.zeros(rows.n_rows + 1, np.int64)
    n_nonzeros = sum(int(np.count_nonzero(kept[rows.columns(part.start, part.stop)])) for part in _slices(rows))
    indices, values = space.zeros(n_nonzeros, np.uint32), space.zeros(n_nonzeros, np.float32)
    copied = Pages(indices), Pages(values)
    done = 0
    for start, stop in rows.slices(_SLICE):
        part = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
        found = rows.columns(part.start, part.stop)
        chosen = kept[found]
        ends = np.concatenate([[0], np.cumsum(chosen)])
        indptr[start + 1 : stop + 1] = done + ends[rows.indptr[start + 1 : stop + 1] - part.start]
        following = done + int(ends[-1])
        indices[done:following] = columns[found[chosen]]
        values[done:following] = rows.values[part][chosen]
        for pages in copied:
            pages.release(done, following)
        done = following
        checkpoint()
    return SparseRows(indptr, indices, values, int(np.count_nonzero(kept)))
