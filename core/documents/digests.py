"""Digests of documents: equal documents have equal digests, in whatever dataset and at whatever position they are."""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import NamedRows, PartRows, Rows, TextRows, without_parts
from core.documents.rows import SparseRows

_DIGEST_BYTES = 16


def row_digests(rows: Rows, positions: NDArray[np.int64]) -> Iterator[bytes]:
    """A digest of each document at these positions. Vectors have no explicit zeros, and their indices ascend."""
    rows = without_parts(rows)
    for position in positions.tolist():
        yield _digest(_content(rows, position))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _content(rows: Rows, position: int) -> bytes:
    start, stop = int(rows.indptr[position]), int(rows.indptr[position + 1])
    match rows:
        case PartRows():
            # a part that the document lacks says no more than one that no document has
            held = [
                (name, part)
                for name, part in sorted(rows.parts.items())
                if part.indptr[position + 1] > part.indptr[position]
            ]
            return b"".join(name.encode() + b"\0" + _digest(_content(part, position)) for name, part in held)
        case TextRows():
            return rows.data[start:stop].tobytes()
        case SparseRows():
            return rows.indices[start:stop].tobytes() + rows.values[start:stop].tobytes()
        case NamedRows():
            # columns are numbered by each dataset in its own order
            names = [rows.names[column] for column in rows.rows.indices[start:stop].tolist()]
            return repr(sorted(zip(names, rows.rows.values[start:stop].tolist(), strict=True))).encode()
