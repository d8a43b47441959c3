"""The draw of a labeled document: at random or not, which decides how far labels stand for all documents."""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import refused


class Draw(IntEnum):
    """Draw of a labeled document. Its name in lower case is the word that people write."""

    UNKNOWN = 0
    RANDOM = 1
    """drawn at random from the documents without a label, as any other might have been"""
    CHOSEN = 2
    """chosen since a model was unsure of it (active learning)"""
    FOUND = 3
    """found by its class, as by searching for words of that class or by what a model predicts"""

    @property
    def word(self) -> str:
        """Word for it in documents and answers."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> "Draw":
        """The draw of a word; raises KeyError."""
        return _BY_WORD[word]


def checked_drawn(drawn: NDArray[np.integer[Any]] | None, n_rows: int) -> NDArray[np.int8]:
    """The draws of ``n_rows`` documents, shape (n_rows,), UNKNOWN if none are given; raises InvalidDocuments for
    another shape or other values.
    """
    if drawn is None:
        return np.full(n_rows, Draw.UNKNOWN, np.int8)
    wrong = None
    if drawn.shape != (n_rows,):
        wrong = (
            f"{len(drawn)} given for {n_rows} documents"
            if drawn.ndim == 1
            else f"has {drawn.ndim} dimensions instead of one"
        )
    elif not np.isin(drawn, list(Draw)).all():
        wrong = f"must be one of {', '.join(f'{draw.value} ({draw.word})' for draw in Draw)}"
    if wrong is not None:
        raise refused(wrong, "drawn")
    return drawn.astype(np.int8)


_BY_WORD = {draw.word: draw for draw in Draw}
