"""Static encoders, as of model2vec and WordLlama: a table with a vector of each token; a text is the mean of its
tokens'.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from workers.encoders.encoder import MOST_TOKENS, EncoderUnavailable, Tokens, Vectors, tokens_in
from workers.encoders.tensors import tensors_in


class StaticTable:
    """An encoder that looks up tokens."""

    def __init__(self, table: Vectors, tokens: Tokens) -> None:
        self._table, self._tokens = table, tokens

    @classmethod
    def load(cls, folder: Path, file: Path) -> Self:
        """The table of a file of one tensor; raises EncoderUnavailable."""
        tensors = tensors_in(file)
        tables = [tensor for tensor in tensors.values() if tensor.ndim == 2]
        if len(tensors) != 1 or len(tables) != 1:
            found = f"has {len(tensors)} tensors in {file.name}, where a static encoder has one table"
            raise EncoderUnavailable(
                f"{found}; a transformer needs its config.json beside it, or an export to model.onnx"
            )
        return cls(tables[0].astype(np.float32), tokens_in(folder, MOST_TOKENS, special=False))

    @property
    def width(self) -> int:
        """See Encoder."""
        return int(self._table.shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See Encoder; a text without tokens is zeros."""
        found = np.zeros((len(texts), self.width), np.float32)
        for place, text in enumerate(texts):
            ids = np.array(self._tokens(text), np.int64)
            known = ids[ids < len(self._table)]
            if len(known):
                found[place] = self._table[known].mean(axis=0)
        return found
