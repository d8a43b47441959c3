"""Scratch files: arrays that a training maps instead of holding them in memory."""

import mmap
import os
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from storage.store.local_files import translate_os_errors


class ScratchFiles:
    """A core.documents.rows.Space with arrays in files of a folder.

    The files have no names: they end with their arrays, or their process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @translate_os_errors("write", "the rows of a training")
    def zeros(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """See Space; raises StoreFull where the disk has no room, before anything is written: a page without a block
        would kill the process.
        """
        size = count * np.dtype(dtype).itemsize
        if not size:
            return np.zeros(count, dtype)
        with TemporaryFile(dir=self._folder) as file:
            if sys.platform == "linux":
                os.posix_fallocate(file.fileno(), 0, size)
            else:  # a Mac cannot reserve: a disk that fills up ends the process there
                file.truncate(size)
            return np.ndarray((count,), dtype, mmap.mmap(file.fileno(), size))
