"""Labels to doubt, by probabilities of models that were not told them.

Source: Northcutt, Jiang & Chuang, Confident learning: estimating uncertainty in dataset labels, 2021 (predictions out of sample; here ranked by the
margin between the label and the likeliest other one).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def doubtful(probabilities: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """The rows of which another class is likelier than the label, shape (n_doubtful,), the largest margin first, of equals the first row.

    ``probabilities`` have shape (n, n_classes), ``labels`` are class indices, shape (n,).
    """
    margins = probabilities[np.arange(len(labels)), labels] - probabilities.max(axis=1, initial=0.0)
    rows = np.flatnonzero(margins < 0)
    return rows[np.argsort(margins[rows], kind="stable")]
