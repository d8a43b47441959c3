"""Dense matrices of the Open Inference Protocol: memory counted while they are read, and when they are refused."""

import msgspec
import numpy as np
import pytest

from app.codecs.base import Bounds
from app.inference.tensors import documents_of
from core.documents.rows import SparseRows
from storage.errors import LimitExceeded
from tests.memory import measured

BOUNDS = Bounds(
    body_bytes=1 << 28, decompressed_bytes=1 << 28, document_bytes=1 << 26, documents=1000, nonzeros=1 << 27
)


def inputs(data: bytes, *shape: int) -> msgspec.Raw:
    return msgspec.Raw(b'[{"name":"X","shape":%s,"datatype":"FP32","data":%s}]' % (msgspec.json.encode(shape), data))


@pytest.mark.parametrize(("n_rows", "width"), [(10, 100_000), (1000, 1000)])
def test_a_matrix_takes_no_more_than_twice_the_memory_that_is_counted(n_rows: int, width: int) -> None:
    given = inputs(b"[" + b",".join([b"[" + b",".join([b"1"] * width) + b"]"] * n_rows) + b"]", n_rows, width)
    counted: list[int] = []
    with measured() as memory:
        *_, rows = documents_of(given, BOUNDS, counted.append)
    assert isinstance(rows, SparseRows)
    np.testing.assert_array_equal(rows.indptr, np.arange(n_rows + 1) * width)
    np.testing.assert_array_equal(rows.indices.reshape(n_rows, width), np.tile(np.arange(width), (n_rows, 1)))
    assert (rows.values == 1).all()
    assert memory.peak < 2 * sum(counted) + (8 << 20)


def test_more_documents_than_are_allowed_are_refused_before_their_numbers_are_read() -> None:
    with pytest.raises(LimitExceeded, match="1000 documents"):
        list(documents_of(inputs(b'["no number"]', 1001, 3), BOUNDS, lambda _: None))
