"""Models: the result of training, and all that prediction needs. Loads with NumPy alone."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import spans
from core.documents.rows import SparseRows
from core.documents.term_weights import TermWeights
from core.documents.vocabulary import NUMBERS, Vocabulary
from core.models.tree import LabelTree
from core.one_vs_rest import labels_of, n_problems
from core.validation.calibration import Calibration
from core.validation.label_calibration import LabelCalibration

_TABLE_BYTES = 64 << 20
LIKELY = 0.05
"""probability from which a label that is not given is told, too"""

Arrays = dict[str, NDArray[Any]]


class Weights(NamedTuple):
    """A column of scores: the weights of ``items``, and the intercept."""

    items: NDArray[np.int64]
    """shape (n_items,): features of a linear model, numbers of support rows of a kernel model"""
    weights: NDArray[np.float64]
    """shape (n_items,)"""
    intercept: float


class Contributions(NamedTuple):
    """The summands of a score of one document: it is ``intercept + values @ weights``."""

    items: NDArray[np.int64]
    """shape (n_items,): as in Weights"""
    values: NDArray[np.float64]
    """shape (n_items,): values of the document: of the feature, or of the kernel with the support row"""
    weights: NDArray[np.float64]
    """shape (n_items,)"""
    intercept: float

    @property
    def amounts(self) -> NDArray[np.float64]:
        """shape (n_items,): the amount that each adds to the score."""
        return self.values * self.weights

    def sorted_by(self, importance: NDArray[np.float64]) -> "Contributions":
        """These contributions by descending ``importance``, shape (n_items,); of equals the first item comes first."""
        return self.taken(np.argsort(-importance, kind="stable"))

    def taken(self, chosen: NDArray[np.int64] | slice) -> "Contributions":
        """Some of the contributions."""
        return Contributions(self.items[chosen], self.values[chosen], self.weights[chosen], self.intercept)


@dataclass(frozen=True)
class Model(ABC):
    """A classifier: scores of documents, and the labels that follow from them.

    Two classes have one column of scores, positive for the second of ``classes``. More classes have a column each, and
    the largest score wins. Where documents may have several labels, each label has a column, however few there are.
    Features that training never saw count as zero.
    """

    classes: Sequence[str | int]
    n_features: int
    """number of features of the training documents; larger indices are unseen, too"""
    features: NDArray[np.uint32]
    """shape (n_seen,), ascending: features that occurred in training"""
    calibration: Calibration | LabelCalibration | None = field(default=None, kw_only=True)
    """map from scores to probabilities, if the model is calibrated; that of labels where documents may have several"""
    vocabulary: Vocabulary = field(default=NUMBERS, kw_only=True)
    """meaning of the features: it turns documents into rows"""
    nested: bool = field(default=False, kw_only=True)
    """whether the steps of the classes are a tree, so that a row is given a node of it"""

    @property
    def nbytes(self) -> int:
        """Memory that the loaded model takes, look-up tables included."""
        return self.weight_bytes + self.vocabulary.nbytes

    @property
    @abstractmethod
    def weight_bytes(self) -> int:
        """Memory of the weights, look-up tables included."""

    @property
    @abstractmethod
    def row_work(self) -> int:
        """Multiplications for the scores of a document, roughly, beside one for each of its nonzeros."""

    @abstractmethod
    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """Scores, shape (n_rows, n_columns), and the number of nonzeros of features that training never saw."""

    @abstractmethod
    def contributions(self, row: SparseRows, column: int) -> Contributions:
        """The amounts that items add to a column of the scores of a single row, the most important first."""

    @abstractmethod
    def weights_of(self, column: int) -> Weights:
        """The weights of a column of scores."""

    @abstractmethod
    def weights_to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """The weights as arrays, and as JSON the ``family`` and all else that belongs to them."""

    @abstractmethod
    def weight_facts(self) -> dict[str, str | int]:
        """Facts for the owner of the model, by its family."""

    @abstractmethod
    def renumbered(self, numbers: NDArray[np.int64]) -> Self:
        """This model with other numbers of its features: ``numbers[i]``, all different, for feature ``i``."""

    def to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays to store as tensors, and all else to store as JSON."""
        arrays, meta = self.weights_to_arrays()
        named, vocabulary = self.vocabulary.to_arrays()
        calibration = {} if self.calibration is None else {"calibration": self.calibration.to_json()}
        nested = {"nested": True} if self.nested else {}
        return arrays | named, meta | calibration | nested | {"vocabulary": vocabulary}

    def facts(self) -> dict[str, str | int]:
        """Facts for the owner: the ``family``, the ``bytes`` of arrays and words, those of family and vocabulary."""
        size = sum(array.nbytes for array in self.to_arrays()[0].values()) + sum(
            len(string.encode()) for string in self.vocabulary.strings
        )
        return self.weight_facts() | {"bytes": size} | self.vocabulary.facts()

    def scores(self, rows: SparseRows) -> NDArray[np.float64]:
        """shape (n_rows, n_columns)."""
        return self.scores_and_unseen(rows)[0]

    @property
    def n_columns(self) -> int:
        """The number of columns of scores."""
        return len(self.classes) if self.several else n_problems(len(self.classes))

    @cached_property
    def tree(self) -> LabelTree:
        """The tree of the classes of a nested model."""
        return LabelTree(self.classes)

    @property
    def several(self) -> bool:
        """Whether a document may have several labels."""
        return isinstance(self.calibration, LabelCalibration)

    def given_labels(self, probabilities: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which labels each row is given, shape (n_rows, n_classes), by a model of several labels."""
        assert isinstance(self.calibration, LabelCalibration)
        return self.calibration.given(probabilities)

    def label_sets(self, probabilities: NDArray[np.float64]) -> list[list[str | int]]:
        """The labels that each row is given, the likeliest first."""
        given = self.given_labels(probabilities)
        orders = np.argsort(-probabilities, axis=1, kind="stable")
        return [
            [self.classes[place] for place in order if own[place]] for order, own in zip(orders, given, strict=True)
        ]

    def likely_labels(self, probabilities: NDArray[np.float64]) -> list[dict[str, float]]:
        """Probabilities of the labels that each row is given, and of all others from LIKELY on, the likeliest first."""
        told = self.given_labels(probabilities) | (probabilities >= LIKELY)
        orders = np.argsort(-probabilities, axis=1, kind="stable")
        return [
            {str(self.classes[place]): float(row[place]) for place in order if own[place]}
            for order, own, row in zip(orders, told, probabilities, strict=True)
        ]

    def labels_of(
        self, scores: NDArray[np.float64], probabilities: NDArray[np.float64] | None = None
    ) -> NDArray[np.intp]:
        """The likeliest class of each row, or by scores alone where the model is not calibrated; shape (n_rows,):
        positions in ``classes``.

        ``probabilities`` are those of the scores, if they are at hand. So a label never contradicts its probability. Of
        a single class, which all rows are given, the score says how well a row fits.
        """
        if len(self.classes) == 1:
            return np.zeros(len(scores), np.intp)
        likely = self.probabilities(scores) if probabilities is None else probabilities
        return labels_of(scores) if likely is None else np.asarray(np.argmax(likely, axis=1), np.intp)

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """shape (n_rows, n_classes), or None for a model that was not calibrated."""
        return None if self.calibration is None else self.calibration.probabilities(scores)

    def calibrated_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """shape (n_rows, n_classes), by a model that was calibrated."""
        probabilities = self.probabilities(scores)
        assert probabilities is not None
        return probabilities

    @property
    def finite(self) -> bool:
        """Whether every number of the model is finite."""
        return all(bool(np.isfinite(array).all()) for array in self.to_arrays()[0].values())

    @cached_property
    def _table(self) -> list[NDArray[np.uint32]]:
        """One table of the position of every feature in ``features`` (their number where unseen), or none if it would
        be too large.
        """
        if self.n_features * 4 > max(_TABLE_BYTES, 2 * self._bytes_worth_a_table):
            return []
        table = np.full(self.n_features + 1, len(self.features), np.uint32)
        table[self.features] = np.arange(len(self.features), dtype=np.uint32)
        return [table]

    @property
    @abstractmethod
    def _bytes_worth_a_table(self) -> int:
        """Bytes of arrays beside which a table of twice their size is bearable."""

    def _positions(self, indices: NDArray[np.uint32]) -> NDArray[np.integer[Any]]:
        """Positions in ``features``, their number where unseen.

        Gathering with mode clip takes a third of the time of checked indices.
        """
        if self._table:
            return self._table[0].take(indices, mode="clip")
        if not len(self.features):
            return np.zeros(len(indices), np.intp)
        position = np.searchsorted(self.features, indices)
        found = self.features.take(position, mode="clip") == indices
        return np.where(found, position, len(self.features))


_CHUNK = 1 << 16
"""products that are computed at once: few enough for the processor's cache, enough that threads seldom wait for each
other"""
_SPREAD_BYTES = 64 << 20


class _Table(NamedTuple):
    """Look-up table of coefficients."""

    by_feature: bool
    """whether there is a row for every feature, seen or not; else one for each position in ``features``"""
    coefficients: NDArray[np.float64]
    """shape (n_rows, n_columns); zeros where unseen, and in the last row, that of all features beyond"""
    seen: NDArray[np.bool_]
    """shape (n_rows,): whether training saw the feature"""
    telling: bool
    """whether the first coefficient says so, too: it is 0 of no feature that training saw"""


@dataclass(frozen=True)
class LinearModel(Model):
    """Linear scores ``x @ coefficients + intercepts`` of documents."""

    coefficients: NDArray[np.float64]
    """shape (n_seen, n_columns)"""
    intercepts: NDArray[np.float64]
    """shape (n_columns,)"""
    terms: TermWeights | None = field(default=None, kw_only=True)
    """what the values of a document are weighed by first; None if by nothing"""

    @property
    def weight_bytes(self) -> int:
        """See Model."""
        table = self._coefficients
        arrays: list[NDArray[Any]] = [
            self.features,
            self.coefficients,
            table.coefficients,
            table.seen,
            *([] if table.by_feature else self._table),
            *([] if self.terms is None else [self.terms.idf]),
        ]
        return sum(array.nbytes for array in arrays)

    @property
    def row_work(self) -> int:
        """See Model; an intercept a column."""
        return len(self.intercepts)

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """See Model; the features are looked up once for both."""
        scores, unseen = np.empty((rows.n_rows, len(self.intercepts))), 0
        width = max(1, _CHUNK // len(self.intercepts))
        indptr, table = rows.indptr, self._coefficients
        # few rows are not cut: to find out where costs as much as to read them
        for start, stop in spans(indptr, rows.n_rows, width) if rows.n_nonzeros > width else [(0, rows.n_rows)]:
            held = slice(int(indptr[start]), int(indptr[stop]))
            indices = rows.indices[held]
            # gathering converts positions to this type, so they are converted once for both
            positions = (indices if table.by_feature else self._positions(indices)).astype(np.intp, copy=False)
            # gathered as in _positions
            coefficients = table.coefficients.take(positions, axis=0, mode="clip")
            seen = coefficients[:, 0] != 0 if table.telling else table.seen.take(positions, mode="clip")
            unseen += len(positions) - int(np.count_nonzero(seen))
            values = self._weighed(rows.between(start, stop))
            scores[start:stop] = _products(indptr[start : stop + 1] - held.start, values, coefficients)
        scores += self.intercepts
        return scores, unseen

    def contributions(self, row: SparseRows, column: int) -> Contributions:
        """One for each nonzero of a feature that training saw; the importance is the size of the product."""
        own = row.trimmed
        positions = self._positions(own.indices)
        seen = positions < len(self.features)
        positions = positions[seen]
        values, weights = self._weighed(own)[seen].astype(np.float64), self.coefficients[positions, column]
        contributions = Contributions(
            self.features[positions].astype(np.int64), values, weights, float(self.intercepts[column])
        )
        return contributions.sorted_by(np.abs(contributions.amounts))

    def weights_of(self, column: int) -> Weights:
        """Features and their coefficients."""
        return Weights(self.features.astype(np.int64), self.coefficients[:, column], float(self.intercepts[column]))

    def weights_to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """See Model."""
        arrays: Arrays = {"features": self.features, "coefficients": self.coefficients, "intercepts": self.intercepts}
        meta: dict[str, Any] = {"family": "linear", "classes": list(self.classes), "n_features": self.n_features}
        if self.terms is None:
            return arrays, meta
        return arrays | {"idf": self.terms.idf}, meta | {
            "counts": self.terms.counts,
            "signed": self.terms.signed,
            "divided": self.terms.divided,
        }

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of ``weights_to_arrays``."""
        # models of earlier versions have neither signs of hashing nor divided counts
        kinds = (meta.get("counts", False), meta.get("signed", False), meta.get("divided", False))
        return cls(
            list(meta["classes"]),
            meta["n_features"],
            arrays["features"],
            arrays["coefficients"],
            arrays["intercepts"],
            terms=TermWeights(arrays["idf"], *kinds) if "idf" in arrays else None,
        )

    def weight_facts(self) -> dict[str, str | int]:
        """The family, the number of features that have a coefficient, and how values are weighed, if they are."""
        weighed = {} if self.terms is None else {"values": self.terms.in_words}
        return {"family": "linear", "n_seen_features": len(self.features), **weighed}

    def renumbered(self, numbers: NDArray[np.int64]) -> Self:
        """See Model."""
        features = numbers[self.features]
        order = np.argsort(features, kind="stable")
        return replace(
            self,
            n_features=int(features.max(initial=-1)) + 1,
            features=features[order].astype(np.uint32),
            coefficients=self.coefficients[order],
            terms=self.terms and replace(self.terms, idf=self.terms.idf[order]),
        )

    @property
    def _bytes_worth_a_table(self) -> int:
        return self.coefficients.nbytes

    @cached_property
    def _coefficients(self) -> _Table:
        """With a row for every feature if so large a table is bearable: then no positions are looked up."""
        n_columns = self.coefficients.shape[1]
        by_feature = (self.n_features + 1) * n_columns * 8 <= max(_SPREAD_BYTES, 2 * self.coefficients.nbytes)
        n_rows = self.n_features if by_feature else len(self.features)
        rows = self.features if by_feature else np.arange(n_rows)
        coefficients, seen = np.zeros((n_rows + 1, n_columns)), np.zeros(n_rows + 1, bool)
        coefficients[rows], seen[rows] = self.coefficients, True
        return _Table(by_feature, coefficients, seen, bool(self.coefficients[:, 0].all()))

    def _weighed(self, rows: SparseRows) -> NDArray[np.float32]:
        """shape (n_nonzeros,): the values of rows, weighed if the model weighs them."""
        if self.terms is None:
            return rows.values[int(rows.indptr[0]) : int(rows.indptr[-1])]
        return self.terms.weighed(rows, self._positions(rows.columns(int(rows.indptr[0]), int(rows.indptr[-1]))))


def _products(
    indptr: NDArray[np.int64], values: NDArray[np.float32], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores of rows without intercepts, by the coefficients of the features of their values, which are multiplied in
    place. ``indptr`` begins at 0.
    """
    coefficients *= values[:, None]
    filled = indptr[1:] > indptr[:-1]
    if filled.all():
        return np.add.reduceat(coefficients, indptr[:-1], axis=0)
    products = np.zeros((len(filled), coefficients.shape[1]))
    products[filled] = np.add.reduceat(coefficients, indptr[:-1][filled], axis=0)
    return products
