"""Documents with vectors of their texts, which a pre-trained encoder makes."""

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import FIELDS, PartRows, Rows, TextRows, parts_of
from core.documents.part_columns import EncoderId
from core.progress import Phase, Span
from core.watch import Watch
from storage.repositories.datasets.encodings import KeptVectors, digest_of
from storage.store import Store
from workers.encoders.encoder import Encoder
from workers.encoders.rows import mean_of, rows_of_vectors

MOST_BYTES = 2 << 20
"""bytes of text that one job reads at most, which take some two minutes on two cores: 14,000 sentences or 1,900 long
texts"""
_LEAST_SHARE = 0.25
"""share of these bytes that are read of the largest pools"""
_READ_BYTES, _LEAST_BYTES = 1024, 64
"""bytes that are read of a long text, and those by which a text takes longer than its letters alone would"""
_AT_ONCE = 16
"""texts that are encoded between two checkpoints: a transformer makes some ten vectors of long texts in a second"""


class WithVectors(NamedTuple):
    """Documents with a part more: the vectors of their texts."""

    rows: PartRows
    n_read: int
    """number of documents whose text was read"""
    n_texts: int
    """number of documents that have a text"""


def with_vectors(
    store: Store,
    documents: str,
    rows: Rows,
    labeled: NDArray[np.bool_],
    id: EncoderId,
    encoder: Encoder,
    watch: Watch,
    span: Span,
    most_bytes: int = MOST_BYTES,
    until: float = inf,
    margins: Callable[[], NDArray[np.float64]] | None = None,
) -> WithVectors:
    """The documents, stored under the id ``documents``, with vectors of their texts. They have texts.

    Of a large pool about ``most_bytes`` are read now, of one that is larger still fewer, and none after ``until``, a
    time of the monotonic clock. Texts that were not read, now or before, have the mean of the vectors of the others.

    ``labeled``, shape (n_rows,), are read first; where not all may be, those of the least ``margins`` next, shape
    (n_rows,). Making vectors takes a ``span`` of the work of ``watch``. Those that were made are kept, even where it
    raises Stopped.
    """
    parts = parts_of(rows)
    texts = parts[FIELDS["text"]]
    assert isinstance(texts, TextRows)
    digests = [digest_of(text) for text in texts]
    # of equal texts one is read; by their digests texts are in the same random order in whatever dataset they are
    position = {digest: place for place, digest in enumerate(digests) if texts.indptr[place + 1] > texts.indptr[place]}
    order = sorted(position, key=lambda digest: (not labeled[position[digest]], digest))
    kept = KeptVectors(store, documents, id.digest)
    with kept:
        vectors = kept.find(position)
        vectors |= kept.adopt(digest for digest in order if digest not in vectors)
        missing = [digest for digest in order if digest not in vectors]
        n_within = _n_within(missing, position, texts, most_bytes)
        if margins is not None and len(missing) > _AT_ONCE and (n_within < len(missing) or until < inf):
            waits = np.where(labeled, -inf, margins())
            missing.sort(key=lambda digest: float(waits[position[digest]]))
        missing = missing[: _n_within(missing, position, texts, most_bytes)]
        for start in range(0, len(missing), _AT_ONCE):
            if time.monotonic() > until:
                break
            chosen = missing[start : start + _AT_ONCE]
            made = encoder.encode(list(texts.taken(np.array([position[digest] for digest in chosen]))))
            added = dict(zip(chosen, made.astype(np.float16), strict=True))
            kept.add(added)
            vectors |= added
            done = span.position((start + len(chosen)) / len(missing))
            watch.latest = watch.latest._replace(phase=Phase("vectors"), fraction=done)
            watch()
    # a zero vector would not lie between the classes; the mean does
    others = dict.fromkeys(position, mean_of(vectors.values()))
    own = rows_of_vectors([vectors.get(digest, others.get(digest)) for digest in digests], encoder.width)
    n_read, n_texts = (sum(digest in known for digest in digests) for known in (vectors, position))
    return WithVectors(PartRows(dict(sorted({**parts, id.part: own}.items()))), n_read, n_texts)


def _n_within(missing: Sequence[bytes], position: Mapping[bytes, int], texts: TextRows, most_bytes: int) -> int:
    """How many of these texts, the first ones, an encoder reads: about ``most_bytes`` of a pool of no more than twice
    as many, of one twice as large half as many.
    """
    read = np.minimum(np.diff(texts.indptr), _READ_BYTES) + _LEAST_BYTES
    most = most_bytes * max(_LEAST_SHARE, min(1.0, most_bytes / int(read.sum())))
    return int(np.searchsorted(np.cumsum(read[[position[digest] for digest in missing]]), most, side="right"))
