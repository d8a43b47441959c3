"""Claims of documents."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.queue.redis_state import DocumentClaims, connect
from tests.stores import Valkey
from tests.waiting import HANG, until


@pytest.fixture
def claims(valkey: Valkey) -> Iterator[DocumentClaims]:
    with connect(valkey.url, HANG) as redis:
        yield DocumentClaims(redis, "test")


def test_others_see_what_a_person_has_claimed(claims: DocumentClaims) -> None:
    claims.claim("ds-1", {3, 5}, "ann", 60)
    claims.claim("ds-1", {7}, "bob:x", 60)
    assert claims.of_others("ds-1", "ann") == {7}
    assert claims.of_others("ds-1", "bob:x") == {3, 5}
    assert claims.of_others("ds-2", "cleo") == set()
    assert claims.claim("ds-1", [], "cleo", 60) == set()


def test_what_others_have_is_told_and_not_claimed(claims: DocumentClaims) -> None:
    assert claims.claim("ds-1", [3, 5], "ann", 60) == set()
    assert claims.claim("ds-1", [5, 7], "bob:x", 60) == {5}
    assert claims.claim("ds-1", [3, 5, 7], "ann", 60) == {7}
    assert claims.of_others("ds-1", "cleo") == {3, 5, 7}


def test_of_many_who_claim_at_once_one_gets_each_document(claims: DocumentClaims) -> None:
    positions = set(range(50))
    with ThreadPoolExecutor(8) as pool:
        got = [
            positions - lost
            for lost in pool.map(lambda person: claims.claim("ds-1", positions, f"p{person}", 60), range(8))
        ]
    assert sorted(position for each in got for position in each) == sorted(positions)


def test_claims_end_by_themselves(claims: DocumentClaims) -> None:
    claims.claim("ds-1", {3}, "ann", 1)
    until(lambda: claims.of_others("ds-1", "bob") == set())
    assert claims.claim("ds-1", {3}, "bob", 60) == set()
