"""Voters whose answers are drawn, and their votes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.documents.votes import Votes

Answers = NDArray[np.int64]
"""shape (n_documents, n_voters): the class that each voter votes for, -1 where it abstains"""


def votes_of(answers: Answers, n_classes: int) -> Votes:
    """These answers as votes for the classes c0, c1, …"""
    owners, voters = np.nonzero(answers >= 0)
    return Votes(
        [f"voter-{voter}" for voter in range(answers.shape[1])],
        [f"c{each}" for each in range(n_classes)],
        np.concatenate([[0], np.cumsum((answers >= 0).sum(axis=1))]).astype(np.int64),
        voters.astype(np.int32),
        answers[owners, voters].astype(np.int32),
        np.ones(len(owners)),
    )


def people(
    truth: NDArray[np.int64], right: Sequence[float], seed: int, n_classes: int = 2, coverage: float = 1.0
) -> Answers:
    """Voters that are right so often, and answer about so many documents."""
    rng, n = np.random.default_rng(seed), len(truth)
    found = np.empty((n, len(right)), np.int64)
    for voter, share in enumerate(right):
        wrong = (truth + rng.integers(1, n_classes, n)) % n_classes
        found[:, voter] = np.where(rng.random(n) < share, truth, wrong)
    found[rng.random(found.shape) >= coverage] = -1
    return found


def rules(truth: NDArray[np.int64], precisions: Sequence[float], coverage: float, seed: int) -> Answers:
    """Rules that vote for one class alone, the first for c0, the second for c1, and so on in turn: each of their votes
    is right so often.
    """
    rng, n = np.random.default_rng(seed), len(truth)
    found = np.full((n, len(precisions)), -1, np.int64)
    for rule, precision in enumerate(precisions):
        own = rule % 2
        n_votes = int(coverage * n)
        hits = rng.permutation(np.flatnonzero(truth == own))[: round(precision * n_votes)]
        misses = rng.permutation(np.flatnonzero(truth != own))[: n_votes - len(hits)]
        found[np.concatenate([hits, misses]), rule] = own
    return found
