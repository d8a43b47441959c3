"""Matrices that are stored column by column: the same documents as row by row, in time linear in the numbers whatever
the shape.
"""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.codecs.arrays import npz
from app.codecs.arrays.npz import NpzDecoder
from app.codecs.base import Bounds, Reading
from app.codecs.transport.encodings import reserve_nothing
from core.documents.kinds import DENSE, PartRows
from core.documents.rows import SparseRows

BOUNDS = Bounds(1 << 30, 1 << 30, 1 << 21, 1 << 20, 1 << 30)


class CountingFile(io.BytesIO):
    """A file that counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def decoded(
    matrix: np.ndarray[Any, Any], spools: list[CountingFile] | None = None, reserve: Any = reserve_nothing
) -> list[SparseRows]:
    """The rows of a matrix; the spools are used for the body and for the turned matrix."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=matrix)
    waiting = iter(spools or [])
    decoder = NpzDecoder(Reading(BOUNDS, lambda: next(waiting, None), reserve))
    batches = [*decoder.feed(buffer.getvalue()), *decoder.finish()]
    parts = [batch.rows.parts[DENSE] for batch in batches if isinstance(batch.rows, PartRows)]
    return [part for part in parts if isinstance(part, SparseRows)]


def dense(parts: list[SparseRows]) -> np.ndarray[Any, Any]:
    matrix = np.zeros((sum(part.n_rows for part in parts), parts[0].n_features), np.float32)
    start = 0
    for part in parts:
        rows = start + np.repeat(np.arange(part.n_rows), np.diff(part.indptr))
        matrix[rows, part.indices] = part.values
        start += part.n_rows
    return matrix


@given(
    st.integers(2, 9),
    st.integers(2, 9),
    st.integers(1, 40),
    st.integers(1, 30),
    st.sampled_from(["<f4", ">f8", "|b1", "<i2"]),
)
def test_both_orders_are_the_same_documents(n_rows: int, n_features: int, tile: int, numbers: int, dtype: str) -> None:
    matrix = (np.arange(n_rows * n_features).reshape(n_rows, n_features) % 5).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(npz, "_TILE_BYTES", tile)
        patch.setattr(npz, "_SLICE_NUMBERS", numbers)
        assert np.array_equal(dense(decoded(np.asfortranarray(matrix))), matrix.astype(np.float32))
        assert np.array_equal(dense(decoded(matrix)), matrix.astype(np.float32))


@pytest.mark.parametrize("shape", [(2000, 1000), (100, 20_000), (8, 250_000), (250_000, 8)])
def test_reads_are_few_whatever_the_shape(shape: tuple[int, int]) -> None:
    spools = [CountingFile(), CountingFile()]
    assert sum(part.n_rows for part in decoded(np.zeros(shape, np.float32, order="F"), spools)) == shape[0]
    assert spools[1].reads <= 64, "one for each slice and tile"


def test_a_turned_matrix_in_memory_is_reserved() -> None:
    reserved: list[int] = []
    decoded(np.zeros((300, 400), np.float64, order="F"), reserve=reserved.append)
    assert sum(reserved) == 300 * 400 * 8


def test_the_caller_may_stop_while_the_matrix_is_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "_TILE_BYTES", 1000)
    parts = decoded(np.ones((100, 50), np.float64, order="F"))
    assert [part.n_rows for part in parts[:50]] == [0] * 50, "one for each tile"


@pytest.mark.parametrize("order", ["C", "F"])
def test_ids_are_read_with_few_rows_at_a_time(order: Any) -> None:
    """A matrix of one column has many rows in a slice of numbers, but an id may take a kilobyte."""
    buffer = io.BytesIO()
    np.savez(buffer, X=np.ones((20_000, 1), np.float32, order=order), ids=np.arange(20_000).astype("U256"))
    decoder = NpzDecoder(Reading(BOUNDS))
    batches = [*decoder.feed(buffer.getvalue()), *decoder.finish()]
    assert max(batch.rows.n_rows for batch in batches) <= 8192
