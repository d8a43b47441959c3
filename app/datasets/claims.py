"""Claims of documents by the people who will label them.

While Redis does not answer there are none, which at worst has two people label a document.
"""

from collections.abc import Collection
from contextlib import suppress

from app.services import Services
from storage.errors import RedisStateUnavailable


def claimed_by_others(services: Services, dataset: str, by: str | None) -> set[int]:
    """Positions of the documents that others than this person have claimed; none where nobody is named."""
    with suppress(RedisStateUnavailable):
        return set() if by is None else services.redis_state.claims.of_others(dataset, by)
    return set()


def claim(services: Services, dataset: str, positions: Collection[int], by: str | None, seconds: int) -> set[int]:
    """Claim documents for a person; positions of those that others were faster to claim.

    Claims of nobody, or of no seconds, are none.
    """
    with suppress(RedisStateUnavailable):
        return (
            set() if by is None or not seconds else services.redis_state.claims.claim(dataset, positions, by, seconds)
        )
    return set()
