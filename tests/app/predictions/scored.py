"""Models and rows that are scored."""

import numpy as np

from core.documents.rows import SparseRows
from core.models.model import LinearModel

N_ROWS, N_FEATURES = 500, 40


def rows_of(n_rows: int = N_ROWS) -> SparseRows:
    """Rows of 0 to 7 features."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 8, n_rows)
    indices = np.concatenate([np.sort(rng.choice(N_FEATURES, length, replace=False)) for length in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SparseRows(indptr, indices.astype(np.uint32), rng.normal(size=len(indices)).astype(np.float32), N_FEATURES)


def model_of(n_classes: int) -> LinearModel:
    """A model that saw every other feature."""
    rng = np.random.default_rng(2)
    features = np.arange(0, N_FEATURES, 2, dtype=np.uint32)
    n_columns = 1 if n_classes == 2 else n_classes
    return LinearModel(
        [chr(97 + class_index) for class_index in range(n_classes)],
        N_FEATURES,
        features,
        rng.normal(size=(len(features), n_columns)),
        np.zeros(n_columns),
    )
