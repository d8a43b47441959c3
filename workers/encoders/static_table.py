"""Static encoders, as of model2vec and WordLlama: a table with a vector of each token; a text is the mean of its
tokens'.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from workers.encoders.encoder import MOST_TOKENS, EncoderUnavailable, Vectors, tokenizer_in
from workers.encoders.tensors import tensors_in

_AT_ONCE = 64


class StaticTable:
    """An encoder that looks up tokens."""

    def __init__(self, table: Vectors, tokenizer: Any) -> None:
        self._table, self._tokenizer = table, tokenizer

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
        return cls(tables[0].astype(np.float32), tokenizer_in(folder, MOST_TOKENS))

    @property
    def width(self) -> int:
        """See Encoder."""
        return int(self._table.shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See Encoder; a text without tokens is zeros."""
        found = np.zeros((len(texts), self.width), np.float32)
        for start in range(0, len(texts), _AT_ONCE):
            for place, tokens in enumerate(
                self._tokenizer.encode_batch_fast(list(texts[start : start + _AT_ONCE]), add_special_tokens=False),
                start,
            ):
                ids = np.array(tokens.ids, np.int64)
                known = ids[ids < len(self._table)]
                if len(known):
                    found[place] = self._table[known].mean(axis=0)
        return found
