"""Scores of many documents, kept on disk until all are there to be ranked."""

from typing import IO

import numpy as np
from numpy.typing import NDArray

from workers.store.os_errors import translate_os_errors


class KeptScores:
    """Scores in a file that is gone when it is closed; at most ``most`` numbers, beyond which none are kept."""

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
        # written, not mapped: a disk without room is then an error, not a signal that ends the process
        if self.complete:
            self._file.write(np.ascontiguousarray(scores).data)

    @translate_os_errors("read", "the scores of an evaluation")
    def read(self) -> NDArray[np.float64]:
        """All of them, shape (n_rows, n_columns), mapped; at least one row was kept. Raises StoreUnavailable."""
        self._file.flush()
        return np.memmap(self._file, np.float64, "r", shape=(self._n_rows, self._n_columns))
