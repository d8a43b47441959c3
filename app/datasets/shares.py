"""Who labels which documents of a dataset: shares, what everybody answers, and what somebody has claimed for now."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.services.wiring import Services
from storage.errors import RedisUnavailable
from storage.repositories.datasets import Answer

_APART = np.uint64(1 << 63)
"""Beyond all other numbers that are mixed: whom a document belongs to says nothing of whether it is everybody's."""


class Part(NamedTuple):
    """A dataset as one person is to label it."""

    of_others: NDArray[np.bool_]
    """Whether a document is in the share of another person, or claimed by another, shape (n_documents,)."""
    overlap: NDArray[np.int64]
    """Positions of the documents that everybody answers, in the order in which all get them."""
    answers: Mapping[int, Answer]
    """What people say of documents, by position. Of those that everybody answers the person learns what others said
    after the own answer, or when somebody has settled them."""


def part_of(services: Services, dataset: str, person: str | None, by: str | None = None) -> Part:
    """The part of a person, whom the log knows by this name, without the documents that others than ``by`` have
    claimed; of nobody all documents and answers. Raises NotFound.

    A number that looks random decides by the position. So shares stay the same, and are random samples of the
    documents. Who has no share may label all of them.
    """
    n = services.datasets.get(dataset).n_documents
    answers = services.datasets.log(dataset).answers()
    of_others = np.zeros(n, bool)
    overlap = np.zeros(0, np.int64)
    if person is not None:
        profile = services.datasets.profile(dataset)
        shares, overlap = profile.shares, overlap_of(n, profile.overlap)
        if person in shares:
            ends = np.cumsum([*shares.values()])
            drawn = mixed(np.arange(n, dtype=np.uint64)) / np.float64(1 << 64) * ends[-1]
            owners = np.minimum(np.searchsorted(ends, drawn, side="right"), len(ends) - 1)
            of_others = np.asarray(owners != list(shares).index(person))
        for position in overlap.tolist():
            answer = answers.get(position)
            if answer is not None and answer.settled_by is None and person not in answer.answered_by:
                notes = {name: note for name, note in answer.notes.items() if name == person}
                answers[position] = answer._replace(label=None, skips=frozenset(), votes={}, notes=notes)
    if by is not None:
        with suppress(RedisUnavailable):
            of_others[[*services.redis_state.claims.of_others(dataset, by)]] = True
    of_others[overlap] = False
    return Part(of_others, overlap, answers)


def claim(
    services: Services, dataset: str, part: Part, positions: Collection[int], by: str | None, seconds: int
) -> set[int]:
    """Claim documents for a person; positions of the documents that others were faster to claim.

    Claims of nobody, of no seconds, or of documents that everybody answers are none.
    """
    if by is not None and seconds:
        with suppress(RedisUnavailable):
            alone = {*positions}.difference(part.overlap.tolist())
            return services.redis_state.claims.claim(dataset, alone, by, seconds)
    return set()


def overlap_of(n: int, share: float) -> NDArray[np.int64]:
    """Positions of the documents, of ``n``, that everybody answers: a random sample, in random order."""
    count = round(share * n)
    if not count:
        return np.zeros(0, np.int64)
    return np.argsort(mixed(np.arange(n, dtype=np.uint64) + _APART), kind="stable")[:count]


@np.errstate(over="ignore")
def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random, all different: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
