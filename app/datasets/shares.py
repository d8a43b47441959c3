"""Shares of a dataset: which documents are whose to label."""

import numpy as np
from numpy.typing import NDArray

from app.services import Services


def are_of_others(services: Services, dataset: str, person: str | None, n_documents: int) -> NDArray[np.bool_]:
    """shape (n_documents,): whether a document is in the share of another person; raises NotFound.

    A number that looks random decides by the position, so a share stays the same, and is a random sample of the
    documents. Who has no share may label all of them.
    """
    shares = {} if person is None else services.datasets.profile(dataset).shares
    if person is None or person not in shares:
        return np.zeros(n_documents, bool)
    ends = np.cumsum([*shares.values()])
    drawn = mixed(np.arange(n_documents, dtype=np.uint64)) / np.float64(1 << 64) * ends[-1]
    owners = np.minimum(np.searchsorted(ends, drawn, side="right"), len(ends) - 1)
    return np.asarray(owners != list(shares).index(person))


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random, all different: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
