"""Claims of documents."""

from collections.abc import Iterator

import pytest

from tests.waiting import HANG, until
from tests.workers.conftest import Valkey
from workers.queue.claims import Claims
from workers.queue.connect import connect


@pytest.fixture
def claims(valkey: Valkey) -> Iterator[Claims]:
    with connect(valkey.url, HANG) as redis:
        yield Claims(redis, "test")


def test_others_see_what_a_person_has_claimed(claims: Claims) -> None:
    claims.claim("ds-1", {3, 5}, "ann", 60)
    claims.claim("ds-1", {7}, "bob:x", 60)
    assert claims.of_others("ds-1", "ann") == {7}
    assert claims.of_others("ds-1", "bob:x") == {3, 5}
    assert claims.of_others("ds-2", "cleo") == set()
    claims.claim("ds-1", [], "cleo", 60)


def test_claims_end_by_themselves(claims: Claims) -> None:
    claims.claim("ds-1", {3}, "ann", 1)
    until(lambda: claims.of_others("ds-1", "bob") == set())
