"""Counts of words of generated texts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

N, TERMS = 300, 1200


def counted(seed: int, terms: int = TERMS) -> tuple[Any, NDArray[np.int64]]:
    """Counts of the terms of documents of very unlike lengths, and their classes: a tenth of the terms tells them
    apart.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, N)
    shares = rng.dirichlet(np.full(terms, 0.3))
    shares = np.stack([shares, shares])
    for label in (0, 1):
        shares[label, label * terms // 10 : (label + 1) * terms // 10] *= 3
    shares /= shares.sum(axis=1, keepdims=True)
    lengths = rng.geometric(1 / 60, N) + 5
    return sparse.csr_matrix([rng.multinomial(*each) for each in zip(lengths, shares[truth], strict=True)]), truth
