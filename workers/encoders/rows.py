"""Vectors of encoders as rows of documents, and models that read texts by their encoder."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.part_columns import Encode, EncoderId, PartColumns
from core.documents.rows import SparseRows
from core.models.model import Model
from storage.errors import Conflict
from storage.repositories.datasets import Documents
from storage.repositories.datasets.encodings import KeptVectors, digest_of
from workers.encoders.catalogue import Encoders
from workers.encoders.encoder import EncoderUnavailable


def rows_of_vectors(vectors: Sequence[NDArray[Any] | None], width: int) -> SparseRows:
    """Vectors with their zeros as rows, empty ones where there is no vector."""
    known = [each for each in vectors if each is not None]
    indptr = np.cumsum([0, *(width * (each is not None) for each in vectors)], dtype=np.int64)
    columns = np.tile(np.arange(width, dtype=np.uint32), len(known))
    return SparseRows(indptr, columns, np.array(known, np.float32).ravel(), width)


def with_encoder(model: Model, encoders: Encoders) -> Model:
    """The model, able to read texts if it learned from vectors of an encoder; reading raises Conflict where that is not
    at hand.
    """
    columns = model.vocabulary
    if not isinstance(columns, PartColumns) or columns.encoder is None:
        return model
    return _reading(model, partial(_encode, encoders, columns.encoder))


def with_kept_vectors(model: Model, documents: Documents, *, others: bool = False) -> Model:
    """The model, which reads the texts of a dataset by the vectors that are kept of them.

    Without ``others`` the rest has none: to read a large pool takes minutes.
    """
    columns = model.vocabulary
    if not isinstance(columns, PartColumns) or columns.encoder is None or documents.vectors is None:
        return model
    width = columns.ranges[columns.encoder.part]
    encode = columns.encode if others else None
    return _reading(model, partial(_find, documents.vectors(columns.encoder.digest), width.stop - width.start, encode))


def _reading(model: Model, encode: Encode) -> Model:
    assert isinstance(model.vocabulary, PartColumns)
    return replace(model, vocabulary=replace(model.vocabulary, encode=encode))


def _find(kept: KeptVectors, width: int, encode: Encode | None, texts: TextRows) -> SparseRows:
    digests = [digest_of(text) for text in texts]
    found: dict[bytes, NDArray[Any]] = {**kept.find(digests)}
    missing = [place for place, digest in enumerate(digests) if digest not in found]
    if encode is not None and missing:
        made = encode(texts.taken(np.array(missing))).values.reshape(len(missing), width)
        found |= {digests[place]: vector for place, vector in zip(missing, made, strict=True)}
    empty = digest_of("")
    return rows_of_vectors([None if digest == empty else found.get(digest) for digest in digests], width)


def _encode(encoders: Encoders, id: EncoderId, texts: TextRows) -> SparseRows:
    try:
        encoder = encoders.load(id)
    except EncoderUnavailable as error:
        raise Conflict(f"the model reads texts by the encoder {id.name!r}, which {error}") from None
    return rows_of_vectors(list(encoder.encode(list(texts))), encoder.width)
