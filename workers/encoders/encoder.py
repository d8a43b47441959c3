"""The protocol of encoders, and the tokens that all of them read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

MOST_TOKENS = 512
"""tokens of a text that are read at most, where its folder does not say; the rest of a longer text is left out"""


class EncoderUnavailable(Exception):
    """An encoder that cannot be used, and why, as the end of a sentence about it."""


class Encoder(Protocol):
    """A pre-trained model that makes a vector of a text. Threads may use it side by side."""

    @property
    def width(self) -> int:
        """Numbers of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """shape (n_texts, width)."""


def tokenizer_in(folder: Path, most_tokens: int) -> Any:
    """The tokenizer of a folder, which cuts texts beyond so many tokens; raises EncoderUnavailable."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise EncoderUnavailable("needs the extra: pip install 'halfmoon[encoders]'") from None
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise EncoderUnavailable(f"has no tokenizer.json in {folder}")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises Exception itself
        raise EncoderUnavailable(f"has a tokenizer.json that cannot be read: {error}") from None
    tokenizer.enable_truncation(most_tokens)
    tokenizer.no_padding()
    return tokenizer
