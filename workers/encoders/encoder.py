"""The protocol of encoders, the tokens that all of them read, and the contents of their folders: settings as JSON, and
tensors as safetensors.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Tokens = Callable[[str], Sequence[int]]
"""Makes the tokens of a text."""

MOST_TOKENS = 512
"""tokens of a text that are read at most, where its folder does not say; the rest of a longer text is left out"""
LETTERS_A_TOKEN = 16
"""letters of a text that are looked at for each token that is read: a text of megabytes takes no longer than others"""


class EncoderUnavailable(Exception):
    """An encoder that cannot be used, and why, as the end of a sentence about it."""


class Encoder(Protocol):
    """A pre-trained model that makes a vector of a text. Threads may use it side by side."""

    @property
    def width(self) -> int:
        """Numbers of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """shape (n_texts, width)."""


def tokens_in(folder: Path, most_tokens: int, *, special: bool = True) -> Tokens:
    """Makes the tokens of a text, so many at most, of the beginning of a long one, by the tokenizer of a folder;
    ``special`` ones are around them. Raises EncoderUnavailable.
    """
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

    def tokens(text: str) -> Sequence[int]:
        ids: Sequence[int] = tokenizer.encode(text[: most_tokens * LETTERS_A_TOKEN], add_special_tokens=special).ids
        return ids

    return tokens


def settings_in(file: Path) -> dict[str, Any]:
    """A file of settings, empty where there is none; raises EncoderUnavailable."""
    try:
        found = json.loads(file.read_bytes()) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"has a {file.name} that cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def tensors_in(file: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name; raises EncoderUnavailable."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        raise EncoderUnavailable(f"has a {file.name} that cannot be read: {error}") from None
