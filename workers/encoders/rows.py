"""Vectors of encoders as rows of documents, and models that read texts by their encoder."""

from dataclasses import replace
from functools import partial

import numpy as np

from core.documents.kinds import TextRows
from core.documents.part_columns import EncoderId, PartColumns
from core.documents.rows import SparseRows
from core.models.model import Model
from storage.errors import Conflict
from workers.encoders.catalogue import Encoders
from workers.encoders.encoder import EncoderUnavailable, Vectors


def dense_rows(vectors: Vectors) -> SparseRows:
    """Vectors, shape (n_rows, width), with their zeros. They are not copied."""
    n_rows, width = vectors.shape
    indptr = np.arange(n_rows + 1, dtype=np.int64) * width
    return SparseRows(indptr, np.tile(np.arange(width, dtype=np.uint32), n_rows), vectors.reshape(-1), width)


def with_encoder(model: Model, encoders: Encoders) -> Model:
    """The model, able to read texts if it learned from vectors of an encoder; reading raises Conflict where that is not
    at hand.
    """
    columns = model.vocabulary
    if not isinstance(columns, PartColumns) or columns.encoder is None:
        return model
    return replace(model, vocabulary=replace(columns, encode=partial(_encode, encoders, columns.encoder)))


def _encode(encoders: Encoders, id: EncoderId, texts: TextRows) -> SparseRows:
    try:
        encoder = encoders.load(id)
    except EncoderUnavailable as error:
        raise Conflict(f"the model reads texts by the encoder {id.name!r}, which {error}") from None
    return dense_rows(encoder.encode(list(texts)))
