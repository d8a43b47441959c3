"""Votes in suggestions and doubts: documents on which voters differ, and the documents to ask a voter about."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.predictions.schemas import SuggestBody
from app.predictions.scoring import DatasetScores, score_stored
from app.services.wiring import Services
from core.documents.drawn import Draw
from core.evaluation.active_learning import POOL, Balanced, BalancedMargins, interleaved, top_two
from core.evaluation.voting import VoterRates
from core.models.model import Model
from storage.errors import NotFound
from storage.records import Version
from storage.repositories.datasets import Documents

Positions = NDArray[np.int64]
_KNOWN_SHARE = 4
"""Of so many documents that a voter is asked about, one has a label already: it says how right the voter is."""
_KNOWN = 40
"""Answers to documents with labels, from which on how right a voter is is known well enough."""
_LEAST_WORTH = 0.01
"""Documents that an answer must set right in the mean to be worth asking for."""


def rates_of(services: Services, version: Version) -> VoterRates:
    """How right voters are, by the report of the version's training; nothing is known once its job was deleted."""
    try:
        outcome = services.jobs.get(version.job).outcome
    except NotFound:
        outcome = None
    return VoterRates.of(version.classes, None if outcome is None else outcome.report)


def with_votes(
    services: Services, version: Version, known: DatasetScores, model: Model, documents: Documents
) -> DatasetScores:
    """The scores of all documents, with the likeliest classes of those on which voters differ by votes and model
    together.
    """
    votes = documents.votes
    if votes is None or known.probabilities is None or model.several:
        return known
    differing = np.flatnonzero(votes.differ & ~documents.labeled)
    if not len(differing):
        return known
    rates = rates_of(services, version)
    predicted, rivals = known.predicted.copy(), known.rivals.copy()
    probabilities, margins = known.probabilities.copy(), known.margins.copy()
    for scored in score_stored(model, documents, differing):
        of_classes = model.calibrated_probabilities(scored.scores)
        told = rates.told(of_classes, votes.taken(scored.positions))
        likeliest, own = top_two(told), scored.positions
        predicted[own], rivals[own], margins[own] = likeliest
        probabilities[own] = told.max(axis=1)
    return known._replace(predicted=predicted, rivals=rivals, margins=margins, probabilities=probabilities)


class VoterQuery:
    """What a voter is asked next: ``suggest`` for a voter."""

    def __init__(self, services: Services, body: SuggestBody, rates: VoterRates, documents: Documents) -> None:
        assert body.for_ is not None
        if body.by is not None or body.claim:
            raise InvalidRequest("for", "names a voter, so that by and claim, which are for people, have no place here")
        self._voter, self._price, self._n, self._seed = body.for_, body.price, body.n, body.seed
        self._strategy = body.strategy
        self._rates, self._documents = rates, documents
        if documents.label_sets is not None:
            raise InvalidRequest("for", "needs a dataset of one label a document: votes name one class")
        answers = services.datasets.log(body.dataset).answers().values()
        if any(self._voter in answer.answered_by.union(answer.notes) for answer in answers):
            raise InvalidRequest("for", f"{self._voter!r} is a person who labels; a voter needs another name")
        votes, self._answered = documents.votes, np.zeros(len(documents.class_indices), bool)
        if votes is not None and self._voter in votes.voters:
            self._answered[votes.owners[votes.voter == list(votes.voters).index(self._voter)]] = True

    def drawn(
        self, known: DatasetScores, candidates: Positions, random: bool, represent: Callable[[Balanced, int], Positions]
    ) -> dict[int, Draw]:
        """The documents to ask about, in order, and the draw of each. Some have a label, as long as little is known of
        the voter; others are ``random``, or represent those where the answer is worth most, evenly of the classes.
        """
        rng, labeled = np.random.default_rng([self._seed, int(self._answered.sum())]), self._documents.labeled
        left = np.flatnonzero(labeled & ~self._answered)
        missing = _KNOWN - int(np.count_nonzero(labeled & self._answered))
        wanted = max(0, min(missing, self._n // _KNOWN_SHARE, len(left)))
        checks = rng.choice(left, wanted, replace=False)
        unasked = self._unasked(candidates)
        n = min(self._n - wanted, len(unasked))
        if random:
            others = rng.choice(unasked, n, replace=False)
        else:
            pool = BalancedMargins(n * POOL if self._strategy == "diverse" else n)
            pool.add(unasked, known.predicted[unasked], -self._worth(known, unasked))
            others = represent(pool.balanced, n)
        draws = dict.fromkeys(checks.tolist(), Draw.RANDOM)
        draw = Draw.RANDOM if random else Draw.CHOSEN
        return {position: draws.get(position, draw) for position in interleaved(checks, others).tolist()}

    def report(self, known: DatasetScores, candidates: Positions, drawn: dict[int, Draw]) -> dict[str, Any]:
        """What the answers are worth, class by class, what the rest costs, and whether to stop: not before the first
        answers, since a model of few labels may be sure by mistake.
        """
        unasked = self._unasked(candidates)
        worth = np.maximum(self._worth(known, unasked), 0.0)
        next = float(worth[np.isin(unasked, [*drawn])].sum())
        predicted, n_classes = known.predicted[unasked], len(self._rates.classes)
        counts, sums = np.bincount(predicted, minlength=n_classes), np.bincount(predicted, worth, n_classes)
        known_by_class = zip(
            self._rates.classes, self._rates.rates(self._voter), counts.tolist(), sums.tolist(), strict=True
        )
        return {
            "voter": self._voter,
            "answered": int(self._answered.sum()),
            "unasked": len(unasked),
            "cost": None if self._price is None else self._price * len(unasked),
            "worth": float(worth.sum()),
            "next": next,
            "stop": not drawn or (bool(self._answered.any()) and next < _LEAST_WORTH * len(drawn)),
            "classes": {
                str(label): {
                    **{name: own[name] for name in ("right", "low", "high")},
                    "unasked": count,
                    "worth": total,
                }
                for label, own, count, total in known_by_class
            },
        }

    def _unasked(self, candidates: Positions) -> Positions:
        return candidates[~self._answered[candidates]]

    def _worth(self, known: DatasetScores, positions: Positions) -> NDArray[np.float64]:
        if known.probabilities is None:
            raise InvalidRequest(
                "for", "needs a model with probabilities: train with auto, or with the option probabilities"
            )
        likely = known.probabilities[positions].astype(np.float64)
        next = np.maximum(likely - known.margins[positions], 0.0)
        return self._rates.worth(self._voter, known.rivals[positions], likely, next)
