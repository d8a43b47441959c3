"""The scale of the values of documents: their length, a feature that outweighs all others, and the remedy."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, SparseRows
from core.errors import Fault, MessageNames
from core.numerics.compiled import compiled
from core.numerics.lanes import plus, put, spread, take, times, total, widen
from core.numerics.width import WIDTH
from core.progress import Checkpoint

_SLICE = 1 << 21
_USUAL = (1e-2, 1e2)
"""lengths of documents at which the default options of all algorithms make sense"""
_OUTWEIGHS = 1e4
"""times all others that a feature may be: beyond, float32 has no digit left for the others in a distance"""
_FEW = 0.01
"""share of the documents up to which huge values are the documents' fault, and not the feature's"""


class ValueScale(NamedTuple):
    """The scale of the values of some rows."""

    length: float
    """median length |x| of the rows that are not empty, without a feature that outweighs all others; 0 if all are
    empty"""
    largest: float
    """largest absolute value"""
    row: int
    """row of that value"""
    column: int
    """column of that value"""
    dominance: float
    """root mean square of that column in units of that of all others together; 0 where there are no others"""
    n_outweighing: int
    """number of rows whose value in that column outweighs what the other columns are on average; 0 if it does not
    outweigh them"""
    n_rows: int

    @property
    def dominated(self) -> bool:
        """Whether one feature outweighs all others, so that an algorithm does not see them."""
        return self.n_outweighing > 0

    def of_original(self, order: NDArray[np.int64], features: NDArray[np.uint32]) -> "ValueScale":
        """This scale with row and column numbered as in the original documents.

        ``order`` has the position of each row, ``features`` the feature of each column.
        """
        return self._replace(row=int(order[self.row]), column=int(features[self.column]) if len(features) else 0)

    def remedy(self, names: MessageNames) -> str | None:
        """The unusual thing about the scale, with its remedy; None if there is none."""
        if self.dominated:
            return self._remedy_of_dominance(names)
        if self.length == 0 or _USUAL[0] <= self.length <= _USUAL[1]:
            return None
        found = f"documents have a length of about {self.length:.0e}, where about 1 is usual"
        return (
            f"{found}: {'divide' if self.length > 1 else 'multiply'} all values by "
            f"{max(self.length, 1 / self.length):.0e}"
        )

    def _remedy_of_dominance(self, names: MessageNames) -> str:
        document, feature = repr(names.document(self.row)), repr(names.feature(self.column))
        values = f"values up to {self.largest:.1e}"
        if self.n_outweighing <= max(1, _FEW * self.n_rows):
            which = (
                f"document {document} has"
                if self.n_outweighing == 1
                else f"document {document} and {self.n_outweighing - 1} more have"
            )
            found = (
                f"{which} {values} of feature {feature}, which outweighs all others together {self.dominance:.0e} times"
            )
            return f"{found}: correct them, or leave them out"
        found = (
            f"feature {feature} outweighs all others together {self.dominance:.0e} times, with {values} "
            f"(document {document})"
        )
        return f"{found}: leave it out, or divide its values by {self.dominance:.0e}"

    def fault(self, names: MessageNames) -> Fault:
        """The largest value as a fault of its document."""
        return Fault(
            names.document(self.row),
            "values",
            f"feature {names.feature(self.column)!r} has the largest value of all, {self.largest:.1e}",
        )


def value_scale(rows: SparseRows, checkpoint: Checkpoint) -> ValueScale:
    """The scale of the values of these rows; ``checkpoint`` is called between slices."""
    columns, squares = np.zeros(rows.n_features), np.empty(rows.n_rows)
    largest, position = 0.0, 0
    for start, stop in rows.slices(_SLICE):
        found = _add_all_squares(rows, start, stop, squares[start:stop], columns)
        if found >= 0 and abs(float(rows.values[found])) > largest:
            largest, position = abs(float(rows.values[found])), int(found)
        checkpoint()
    if largest == 0:
        return ValueScale(0.0, 0.0, 0, 0, 0.0, 0, rows.n_rows)
    row, column = (
        int(np.searchsorted(rows.indptr, position, side="right")) - 1,
        int(rows.columns(position, position + 1)[0]),
    )
    own, columns[column] = float(columns[column]), 0.0
    others = float(columns.sum())
    dominance, n_outweighing = math.sqrt(own / others) if others > 0 else 0.0, 0
    if dominance > _OUTWEIGHS:
        bound = _OUTWEIGHS * math.sqrt(others / rows.n_rows)
        for start, stop in rows.slices(_SLICE):
            _add_squares(*_part_of(rows, start, stop), column, squares[start:stop], columns)
            part = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
            n_outweighing += int(
                np.count_nonzero((rows.columns(part.start, part.stop) == column) & (np.abs(rows.values[part]) > bound))
            )
            checkpoint()
    return ValueScale(
        math.sqrt(float(np.median(squares[squares > 0]))), largest, row, column, dominance, n_outweighing, rows.n_rows
    )


def _add_all_squares(
    rows: SparseRows, start: int, stop: int, row_squares: NDArray[np.float64], column_squares: NDArray[np.float64]
) -> int:
    """``_add_squares`` of a range of rows, without a column left out."""
    if isinstance(rows, FullRows):
        return int(_add_full_squares(rows.values, int(rows.indptr[start]), row_squares, column_squares))
    return int(_add_squares(*_part_of(rows, start, stop), rows.n_features, row_squares, column_squares))


def _part_of(
    rows: SparseRows, start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
    """Where each of a range of rows begins and ends, the columns of their nonzeros, and the values of all rows."""
    indptr = rows.indptr[start : stop + 1]
    return indptr, rows.columns(int(indptr[0]), int(indptr[-1])), rows.values


@compiled
def _add_squares(
    indptr: NDArray[np.int64],
    columns: NDArray[np.uint32],
    values: NDArray[np.float32],
    left_out: int,
    row_squares: NDArray[np.float64],
    column_squares: NDArray[np.float64],
) -> np.int64:
    """Write |x|² of some rows, without one column, to ``row_squares``; add the squares of each column to
    ``column_squares``.

    Returns the position of the largest absolute value, the first of equals; −1 where there is none above 0.
    """
    largest, position = 0.0, np.int64(-1)
    first = np.uintp(indptr[0])
    for i in range(len(indptr) - 1):
        total = 0.0
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            value = np.float64(values[k])
            square = value * value
            column = columns[k - first]
            column_squares[np.uintp(column)] += square
            if square > largest:
                largest, position = square, np.int64(k)
            if column != left_out:
                total += square
        row_squares[i] = total
    return position


@compiled
def _add_full_squares(
    values: NDArray[np.float32], start: int, row_squares: NDArray[np.float64], column_squares: NDArray[np.float64]
) -> np.int64:
    """``_add_squares`` of rows that store every feature, and with none left out: their values are those from position
    ``start``, a row after the other.
    """
    largest, position = np.float32(0.0), np.int64(-1)
    n_features = len(column_squares)
    whole = n_features - n_features % WIDTH
    for i in range(len(row_squares)):
        first, lanes = start + i * n_features, spread(0.0)
        for j in range(0, whole, WIDTH):
            numbers = widen(values, first + j)
            squares = times(numbers, numbers)
            lanes = plus(lanes, squares)
            put(column_squares, j, plus(take(column_squares, j), squares))
        found = total(lanes)
        for j in range(whole, n_features):
            square = np.float64(values[first + j]) * np.float64(values[first + j])
            found += square
            column_squares[j] += square
        row_squares[i] = found
        for k in range(first, first + n_features):
            if abs(values[k]) > largest:
                largest, position = abs(values[k]), np.int64(k)
    return position
