"""Ranking of documents by their score for a class: precision by recall, average precision, break-even point.

Documents of equal score have no order among them: precision and recall are defined where a run of equal scores ends.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ranking(NamedTuple):
    """A ranking, from the top down, at the runs of equal scores that have documents of the class; there is at least
    one.

    Shapes (n_runs,).
    """

    before: NDArray[np.int64]
    """number of documents above the run"""
    taken: NDArray[np.int64]
    """number of documents down to the end of the run"""
    hits: NDArray[np.int64]
    """number of these that are of the class"""

    @property
    def break_even(self) -> float:
        """Break-even point: the precision where it equals the recall, among the top documents, as many as are of the
        class.

        If these end within a run of equal scores, the run counts by its share of the class: the mean over all its
        orders.
        """
        n_positive = int(self.hits[-1])
        run = int(np.searchsorted(self.taken, n_positive))
        hits = int(self.hits[run - 1]) if run else 0
        share = (int(self.hits[run]) - hits) / int(self.taken[run] - self.before[run])
        return (hits + max(0, n_positive - int(self.before[run])) * share) / n_positive

    @property
    def average_precision(self) -> float:
        """The mean of the precisions at the ends of runs, weighted by the recall that each run adds."""
        added = np.diff(self.hits, prepend=0)
        return float((added * (self.hits / self.taken)).sum() / self.hits[-1])

    def curve(self, most: int) -> NDArray[np.float64]:
        """At most ``most`` points of the precision by recall, shape (n_points, 2), recall first: where evenly spaced
        numbers of hits are reached.
        """
        n_positive = int(self.hits[-1])
        wanted = np.linspace(1, n_positive, min(most, n_positive)).round()
        runs = np.unique(np.searchsorted(self.hits, wanted))
        return np.column_stack([self.hits[runs] / n_positive, self.hits[runs] / self.taken[runs]])


def ranked(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Ranking | None:
    """The ranking by scores, highest first, with the documents of the class ``positive``, both of shape (n_documents,);
    None if none is positive.

    Sorting scores takes a third of the time of sorting positions by them; the places of the class's scores are then
    looked up.
    """
    if not positive.any():
        return None
    runs, counts = np.unique(scores[positive], return_counts=True)
    ascending, n = np.sort(scores), len(scores)
    before = n - np.searchsorted(ascending, runs, "right")
    taken = n - np.searchsorted(ascending, runs, "left")
    return Ranking(before[::-1], taken[::-1], np.cumsum(counts[::-1]))
