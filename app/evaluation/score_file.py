"""Scores of many documents, kept on disk until all are known and can be ranked."""

from typing import IO

import numpy as np
from numpy.typing import NDArray

from workers.store.os_errors import translate_os_errors


class ScoreFile:
    """Scores in a temporary file, at most ``most`` numbers; beyond that no more scores are kept."""

    def __init__(self, file: IO[bytes], n_columns: int, most: int) -> None:
        self._file = file
        self._n_columns = n_columns
        self._most = most
        self._n_rows = 0

    @property
    def complete(self) -> bool:
        """Whether all scores are kept."""
        return self._n_rows * self._n_columns <= self._most

    @translate_os_errors("write", "the scores of an evaluation")
    def add(self, scores: NDArray[np.float64]) -> None:
        """Keep scores of shape (n_rows, n_columns). Raises StoreUnavailable."""
        self._n_rows += len(scores)
        # written, not mapped: a full disk then raises an error instead of a signal that ends the process
        if self.complete:
            self._file.write(np.ascontiguousarray(scores).data)

    @translate_os_errors("read", "the scores of an evaluation")
    def read(self) -> NDArray[np.float64]:
        """All scores, of shape (n_rows, n_columns), mapped into memory; there is at least one row. Raises StoreUnavailable."""
        self._file.flush()
        return np.memmap(self._file, np.float64, "r", shape=(self._n_rows, self._n_columns))
