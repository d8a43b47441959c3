"""Characters by code point: their lower case, and whether they belong to words, both as in Python's regular
expressions.
"""

import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows

_SIGMA, _DOTTED = "\u03a3", "\u0130"
"""capital letters whose lower case is not one character by itself: another sigma ends a word, and a dotted I becomes
two characters"""
_BYTES = (_SIGMA.encode(), _DOTTED.encode())
LOWER_GROWTH = 2
"""bound on the bytes of a character's lower case, in bytes of the character"""


@cache
def character_table() -> NDArray[np.uint32]:
    """shape (0x110000,): twice the lower case of each code point, and 1 more where that belongs to words."""
    every = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    lower = every.replace(_SIGMA, _SIGMA.lower()).replace(_DOTTED, " ").lower()
    table: NDArray[np.uint32] = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), "<u4").astype(
        np.uint32
    ) << np.uint32(1)
    for word in re.finditer(r"\w+", lower):
        table[word.start() : word.end()] |= np.uint32(1)
    return table


def lowered_by_character(texts: TextRows) -> TextRows:
    """The texts, or their lower case where the table cannot lower them character by character."""
    data = texts.data[texts.indptr[0] : texts.indptr[-1]].tobytes()
    if not any(letter in data for letter in _BYTES):
        return texts
    return TextRows.of([text.lower() for text in texts])
