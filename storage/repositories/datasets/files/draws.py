"""How labels were come by: a file of a byte a document, values of core.documents.drawn.Draw.

It exists only if something is known of a label.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from storage.repositories.datasets.files.npy import OptionalColumn

_TYPE = "|i1"
WITHOUT_LABEL = "says how a label was come by, but the document has no label"


class DrawnWriter:
    """Writer of the draws of a dataset, in order. Memory does not grow with them."""

    def __init__(self, folder: Path) -> None:
        self._file = OptionalColumn(folder / "drawn.npy", _TYPE, Draw.UNKNOWN)
        self._counts = np.zeros(len(Draw), np.int64)
        self.finish, self.close = self._file.finish, self._file.close

    def append(self, drawn: NDArray[np.int8] | None, length: int) -> None:
        """Append the draws of the next ``length`` documents, None where nothing is known of them."""
        self._file.append(drawn, length)
        self._counts += 0 if drawn is None else np.bincount(drawn, minlength=len(Draw))

    @property
    def n_bytes(self) -> int:
        """Bytes to store so far: none where nothing is known."""
        return self._file.n_bytes

    @property
    def counts(self) -> dict[str, int]:
        """Number of labels by how they were come by, where that is known."""
        return {draw.word: int(self._counts[draw]) for draw in Draw if draw is not Draw.UNKNOWN and self._counts[draw]}


def draw_detail(word: object) -> str | None:
    """Why this is not how a label was come by; None if it is."""
    words = [draw.word for draw in Draw]
    return None if word in words else f"must be one of {', '.join(words)}"
