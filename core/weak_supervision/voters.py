"""How right each voter is, and the classes of documents by all votes together.

A vote for a class is evidence by how often the same votes of the same voter are right. That a voter abstained is none:
rules of one class abstain nearly always, and what their silence says would outweigh all votes (Dawid and Skene's model
then breaks down).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.votes import Votes
from core.numerics.binomial import QUANTILE_OF_BOTH, wilson_interval
from core.numerics.elementary import Matrix, Vector, log, softmax

_RIGHT, _RIGHT_LABELS = 0.7, 2.0
"""how often a voter is right of whom nothing is known, and the labels that this is worth"""
UNCERTAIN_LABELS = 10.0
"""labels that documents without a certain one are worth, at most, for each voter and class: what is known of them are
guesses by the same votes"""
_FEW_MISTAKES = 2.0
"""mistakes that two voters are taken to make apart"""
_COPIES = 0.5
"""share of mistakes beyond chance that two voters make together, from which on one copies the other; below, who are
unsure of the same documents would be taken for copies, as honest people are"""
_LEAST = 1e-12


class Ballots(NamedTuple):
    """Votes as the model reads them: a ballot is what one voter says of one document, a vote for a class or
    probabilities of some.
    """

    n_documents: int
    n_classes: int
    ballot: NDArray[np.int64]
    """shape (n_votes,): the ballot of each vote"""
    source: NDArray[np.int64]
    """shape (n_votes,): the voter and class of each vote, numbered as they occur"""
    probability: Vector
    """shape (n_votes,)"""
    voter_of: NDArray[np.int64]
    """shape (n_sources,): voter of each source, ascending"""
    class_of: NDArray[np.int64]
    """shape (n_sources,)"""
    document: NDArray[np.int64]
    """shape (n_ballots,): document of each ballot, ascending"""
    voter: NDArray[np.int64]
    """shape (n_ballots,)"""
    choice: NDArray[np.int64]
    """shape (n_ballots,): likeliest class of each ballot"""
    rest: Vector
    """shape (n_ballots,): probability that a ballot gives to none of its classes"""

    @classmethod
    def of(cls, votes: Votes) -> Self:
        """Group the votes by document and voter: each group is a ballot, and its likeliest class is the choice."""
        n_classes, owners, voter = len(votes.classes), votes.owners, votes.voter.astype(np.int64)
        keys, source = np.unique(voter * n_classes + votes.class_index, return_inverse=True)
        places, first, ballot = np.unique(owners * len(votes.voters) + voter, return_index=True, return_inverse=True)
        likeliest = np.lexsort((votes.class_index, -votes.probability, ballot))
        choice = votes.class_index[likeliest[np.searchsorted(ballot[likeliest], np.arange(len(places)))]]
        given = np.bincount(ballot, votes.probability, len(places))
        return cls(
            votes.n_rows,
            n_classes,
            ballot,
            source,
            votes.probability,
            keys // n_classes,
            keys % n_classes,
            owners[first],
            voter[first],
            choice.astype(np.int64),
            np.maximum(0.0, 1.0 - given),
        )

    @property
    def voted(self) -> NDArray[np.bool_]:
        """shape (n_documents,): whether anybody voted."""
        return np.bincount(self.document, minlength=self.n_documents) > 0

    def counted(self) -> Matrix:
        """Votes for each class, shape (n_documents, n_classes)."""
        cells = self.document[self.ballot] * self.n_classes + self.class_of[self.source]
        found = np.bincount(cells, self.probability, self.n_documents * self.n_classes)
        return np.asarray(found.reshape(self.n_documents, self.n_classes), np.float64)


@dataclass(frozen=True)
class VoterModel:
    """How right the voters are: for each voter and class that it votes for, the classes of these documents."""

    ballots: Ballots
    priors: Vector
    """shape (n_classes,): class fractions of the documents that were voted on or labeled"""
    classes_of: Matrix
    """shape (n_sources, n_classes): fractions of the classes among the documents of each source"""
    certain: Matrix
    """shape (n_sources, n_classes): certain labels of these documents"""
    uncertain: Matrix
    """the same of documents without one, by their posteriors; at most UNCERTAIN_LABELS a source"""
    copied: dict[tuple[int, int], float]
    """share of the mistakes of two voters, beyond chance, that they make together; of those that copy each other"""

    @classmethod
    def of(cls, ballots: Ballots, posteriors: Matrix, certain: NDArray[np.bool_], priors: Vector) -> Self:
        """The model by the classes of documents, shape (n_documents, n_classes), some of which are ``certain``."""
        own = ballots.document[ballots.ballot]
        known = _sums(ballots, posteriors, certain[own])
        guessed = _sums(ballots, posteriors, ~certain[own])
        guessed *= np.minimum(1.0, UNCERTAIN_LABELS / np.maximum(guessed.sum(axis=1, keepdims=True), _LEAST))
        named = ballots.class_of[:, None] == np.arange(ballots.n_classes)
        before = priors * np.where(named, _RIGHT, (1 - _RIGHT) / max(1, ballots.n_classes - 1))
        found = _RIGHT_LABELS * before / before.sum(axis=1, keepdims=True) + known + guessed
        copied = _copied(ballots, posteriors)
        return cls(ballots, priors, found / found.sum(axis=1, keepdims=True), known, guessed, copied)

    def posteriors(self, log_priors: Matrix) -> Matrix:
        """The classes of documents by what is known of each without votes, shape (n_documents, n_classes)."""
        logits = log_priors.copy()
        np.add.at(logits, self.ballots.document, self.evidence())
        return softmax(logits)

    def evidence(self) -> Matrix:
        """Log-likelihood ratios of each ballot, shape (n_ballots, n_classes).

        Voters who make the same mistakes share one voice.
        """
        ballots = self.ballots
        said = ballots.rest[:, None] * self.priors
        np.add.at(said, ballots.ballot, ballots.probability[:, None] * self.classes_of[ballots.source])
        return self.voices()[ballots.voter][:, None] * (log(np.maximum(said, _LEAST)) - log(self.priors))

    def voices(self) -> Vector:
        """How much of a voice each voter has, shape (n_voters,): 1 of one whose mistakes are its own."""
        shared = np.ones(int(self.ballots.voter.max(initial=-1)) + 1)
        for pair, share in self.copied.items():
            for each in pair:
                shared[each] += share
        return np.asarray(1.0 / shared)

    def report(self, votes: Votes, posteriors: Matrix) -> dict[str, dict[str, Any]]:
        """For each voter: how often it is right, with an interval of 95 %, its coverage, the same by class, whom it
        copies, and how many documents its votes set right.
        """
        worth = self._worth(posteriors)
        n_ballots = np.bincount(self.ballots.voter, minlength=len(votes.voters))
        found: dict[str, dict[str, Any]] = {}
        for voter, name in enumerate(votes.voters):
            sources = np.flatnonzero(self.ballots.voter_of == voter)
            found[name] = {
                **self._right(sources),
                "coverage": float(n_ballots[voter] / max(1, votes.n_rows)),
                "worth": float(worth[voter]) if voter < len(worth) else 0.0,
                "copies": {
                    votes.voters[sum(pair) - voter]: share for pair, share in self.copied.items() if voter in pair
                },
                "classes": {
                    str(votes.classes[self.ballots.class_of[each]]): self._right(np.array([each])) for each in sources
                },
            }
        return found

    def _right(self, sources: NDArray[np.int64]) -> dict[str, float]:
        """How often votes of these sources are right, as far as labels and posteriors say."""
        known, own = (self.certain + self.uncertain)[sources], self.ballots.class_of[sources]
        total, right = float(known.sum()), float(known[np.arange(len(sources)), own].sum())
        low, high = wilson_interval(right / total if total else 0.0, total, QUANTILE_OF_BOTH)
        return {"right": right / total if total else _RIGHT, "low": low, "high": high}

    def _worth(self, posteriors: Matrix) -> Vector:
        """Documents that would be given another class without a voter's vote, counted by how much likelier their class
        is than that, shape (n_voters,).
        """
        own = log(np.maximum(posteriors[self.ballots.document], _LEAST))
        without = (own - self.evidence()).argmax(axis=1)
        rows, chosen = np.arange(len(own)), posteriors[self.ballots.document]
        gained = chosen[rows, own.argmax(axis=1)] - chosen[rows, without]
        return np.asarray(np.bincount(self.ballots.voter, gained), np.float64)


def _sums(ballots: Ballots, posteriors: Matrix, taken: NDArray[np.bool_]) -> Matrix:
    """Classes of the documents of each source, shape (n_sources, n_classes), over the votes that are ``taken``."""
    found = np.zeros((len(ballots.voter_of), ballots.n_classes))
    own = posteriors[ballots.document[ballots.ballot[taken]]]
    np.add.at(found, ballots.source[taken], ballots.probability[taken][:, None] * own)
    return found


def _copied(ballots: Ballots, posteriors: Matrix) -> dict[tuple[int, int], float]:
    """Of two voters the mistakes that both make, beyond those that chance would have them share, among all that either
    makes.
    """
    mistaken = 1.0 - posteriors[ballots.document, ballots.choice]
    n_voters = int(ballots.voter.max(initial=0)) + 1
    sums = np.zeros((5, n_voters**2))
    for firsts, seconds in _pairs(ballots):
        pair = ballots.voter[firsts] * n_voters + ballots.voter[seconds]
        one, other = mistaken[firsts], mistaken[seconds]
        same = ballots.choice[firsts] == ballots.choice[seconds]
        added = (np.ones(len(pair)), one, other, np.maximum(one, other), same * one)
        for total, each in zip(sums, added, strict=True):
            np.add.at(total, pair, each)
    keys = np.flatnonzero(sums[0])
    total, of_one, of_other, of_either, of_both = sums[:, keys]
    by_chance = of_one * of_other / total / max(1, ballots.n_classes - 1)
    shares = np.clip((of_both - by_chance) / (np.maximum(of_either - by_chance, 0.0) + _FEW_MISTAKES), 0.0, 1.0)
    return {
        (int(key // n_voters), int(key % n_voters)): float(share)
        for key, share in zip(keys, shares, strict=True)
        if share >= _COPIES
    }


def _pairs(ballots: Ballots) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """All pairs of ballots about the same document, the voter that comes first in order first: those so far apart at a
    time, since there are as many as the square of the voters.
    """
    for distance in range(1, int(np.bincount(ballots.document).max(initial=0))):
        firsts = np.flatnonzero(ballots.document[:-distance] == ballots.document[distance:])
        yield firsts, firsts + distance
