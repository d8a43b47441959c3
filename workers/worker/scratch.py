"""Scratch files: arrays that a training maps instead of holding them in memory."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from storage.errors import translate_os_errors
from storage.repositories.datasets.files.npy import mapped


class ScratchFiles:
    """A core.documents.rows.Space with arrays in files of a folder.

    The files have no names: they end with their arrays, or their process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @translate_os_errors("write", "the rows of a training")
    def zeros(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """See Space; raises StoreFull where the disk has no room, before anything is written."""
        with TemporaryFile(dir=self._folder) as file:
            return mapped(file, dtype, count) if count else np.zeros(count, dtype)
