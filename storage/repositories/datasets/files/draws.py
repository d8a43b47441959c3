"""How labels were come by: a file of a byte a document, values of core.documents.drawn.Draw.

It exists only if something is known of a label.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from storage.repositories.datasets.files.npy import NpyWriter, chunks

_TYPE = "|i1"
WITHOUT_LABEL = "says how a label was come by, but the document has no label"


class DrawnWriter:
    """Writer of the draws of a dataset, in order. Memory does not grow with them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "drawn.npy"
        self._length = 0
        self._counts = np.zeros(len(Draw), np.int64)
        self._file: NpyWriter | None = None

    def append(self, drawn: NDArray[np.int8] | None, length: int) -> None:
        """Append the draws of the next ``length`` documents, None where nothing is known of them."""
        if self._file is None and drawn is not None and drawn.any():
            self._file = NpyWriter(self._path, _TYPE)
            for part in chunks(np.broadcast_to(np.int8(Draw.UNKNOWN), self._length)):
                self._file.append(part)
        if self._file is not None:
            appended = np.zeros(length, np.int8) if drawn is None else drawn
            self._file.append(appended)
            self._counts += np.bincount(appended, minlength=len(Draw))
        self._length += length

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far."""
        return 0 if self._file is None else len(self._file)

    @property
    def counts(self) -> dict[str, int]:
        """Number of labels by how they were come by, where that is known."""
        return {draw.word: int(self._counts[draw]) for draw in Draw if draw is not Draw.UNKNOWN and self._counts[draw]}

    def finish(self) -> Path | None:
        """The finished file, None if nothing is known."""
        return None if self._file is None else self._file.finish()

    def close(self) -> None:
        """Close the file, even when the rest cannot be written any more."""
        if self._file is not None:
            self._file.close()


def draw_detail(word: object) -> str | None:
    """Why this is not how a label was come by; None if it is."""
    words = [draw.word for draw in Draw]
    return None if word in words else f"must be one of {', '.join(words)}"
