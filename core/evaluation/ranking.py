"""How far the documents of a class stand before all others when they are ranked by their score for it.

Documents of the same score have no order among them: precision and recall are known where a run of equal scores ends.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ranking(NamedTuple):
    """What is found by going down the ranking, from one run of equal scores to the next; at least one document is of the class."""

    taken: NDArray[np.int64]
    """shape (n_runs,): documents from the top to the end of the run"""
    hits: NDArray[np.int64]
    """shape (n_runs,): how many of them are of the class"""

    @property
    def break_even(self) -> float:
        """The precision where it equals the recall: among as many documents as are of the class, from the top.

        Where that ends amid documents of the same score, these count by the share of them that is of the class: the mean over all their orders.
        """
        n_positive = int(self.hits[-1])
        run = int(np.searchsorted(self.taken, n_positive))
        taken, hits = (int(self.taken[run - 1]), int(self.hits[run - 1])) if run else (0, 0)
        share = (int(self.hits[run]) - hits) / (int(self.taken[run]) - taken)
        return (hits + (n_positive - taken) * share) / n_positive

    @property
    def average_precision(self) -> float:
        """The precisions at the ends of runs, each weighted by the recall that the run adds."""
        added = np.diff(self.hits, prepend=0)
        return float((added * (self.hits / self.taken)).sum() / self.hits[-1])

    def curve(self, most: int) -> NDArray[np.float64]:
        """At most ``most`` points of the precision by recall, shape (n_points, 2), recall first: where evenly spaced numbers of hits are reached."""
        n_positive = int(self.hits[-1])
        wanted = np.linspace(1, n_positive, min(most, n_positive)).round()
        runs = np.unique(np.searchsorted(self.hits, wanted))
        return np.column_stack([self.hits[runs] / n_positive, self.hits[runs] / self.taken[runs]])


def ranked(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Ranking | None:
    """The ranking by these scores, highest first, of which those of the class are ``positive``, both of shape (n_documents,); None if none is."""
    if not positive.any():
        return None
    order = np.argsort(-scores)
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    return Ranking(ends + 1, np.cumsum(positive[order], dtype=np.int64)[ends])
