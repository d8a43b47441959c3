"""Documents with vectors of their texts, which a pre-trained encoder makes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import FIELDS, PartRows, Rows, TextRows, parts_of
from core.documents.part_columns import EncoderId
from core.documents.rows import SparseRows
from core.progress import Phase, Span
from core.watch import Watch
from storage.repositories.datasets.encodings import KeptVectors, digest_of
from storage.store import Store
from workers.encoders.encoder import Encoder

_AT_ONCE = 16
"""texts that are encoded between two checkpoints: a transformer makes some ten vectors of long texts in a second"""


class WithVectors(NamedTuple):
    """Documents with a part more: the vectors of their texts."""

    rows: PartRows
    n_read: int
    """number of documents that have a vector"""


def with_vectors(
    store: Store,
    documents: str,
    rows: Rows,
    labeled: NDArray[np.bool_],
    id: EncoderId,
    encoder: Encoder,
    watch: Watch,
    span: Span,
) -> WithVectors:
    """The documents, stored under the id ``documents``, with vectors of their texts. They have texts.

    ``labeled``, shape (n_rows,), are read first. Making vectors takes a ``span`` of the work of ``watch``. Those that
    were made are kept, even where it raises Stopped.
    """
    parts = parts_of(rows)
    texts = parts[FIELDS["text"]]
    assert isinstance(texts, TextRows)
    digests = [digest_of(text) for text in texts]
    # of equal texts one is read; by their digests texts are in the same random order in whatever dataset they are
    position = {digest: place for place, digest in enumerate(digests) if texts.indptr[place + 1] > texts.indptr[place]}
    order = sorted(position, key=lambda digest: (not labeled[position[digest]], digest))
    kept = KeptVectors(store, documents, id.digest)
    vectors = kept.find(position)
    missing = [digest for digest in order if digest not in vectors]
    with kept:
        for start in range(0, len(missing), _AT_ONCE):
            chosen = missing[start : start + _AT_ONCE]
            made = encoder.encode(list(texts.taken(np.array([position[digest] for digest in chosen]))))
            added = dict(zip(chosen, made.astype(np.float16), strict=True))
            kept.add(added)
            vectors |= added
            done = span.position((start + len(chosen)) / len(missing))
            watch.latest = watch.latest._replace(phase=Phase("vectors"), fraction=done)
            watch()
    known = [digest in vectors for digest in digests]
    indptr = np.concatenate([[0], np.cumsum(known)]).astype(np.int64) * encoder.width
    values = np.array([vectors[digest] for digest in digests if digest in vectors], np.float32).ravel()
    columns = np.tile(np.arange(encoder.width, dtype=np.uint32), sum(known))
    own = SparseRows(indptr, columns, values, encoder.width)
    return WithVectors(PartRows(dict(sorted({**parts, id.part: own}.items()))), sum(known))
