"""Long sightings of a process: other clocks do not count, and a forgotten thing counts as new."""

import pytest

from storage.names import new_id
from storage.repositories import sightings
from storage.repositories.sightings import Sightings
from tests.stores import later


def test_seconds_count_from_the_first_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Sightings()
    with later(monkeypatch, 0):
        assert seen.seconds("a") == 0
    with later(monkeypatch, 10):
        assert 10 <= seen.seconds("a") < 1000
        assert seen.seconds("b") == 0


@pytest.mark.parametrize(
    ("made", "after", "old"), [(0, 90_000, True), (0, 3_700, False), (-90_000, 3_700, True), (-90_000, 100, False)]
)
def test_an_id_that_says_that_it_is_old_must_still_be_seen_for_an_hour(
    monkeypatch: pytest.MonkeyPatch, made: int, after: int, old: bool
) -> None:
    seen = Sightings()
    with monkeypatch.context() as patch:
        patch.setattr("storage.names.time.time_ns", lambda: (1_700_000_000 + made) * 10**9)
        id = new_id("ds")
    monkeypatch.setattr("storage.names.time.time", lambda: 1_700_000_000 + after)
    assert not seen.old(id, 86_400)
    with later(monkeypatch, after):
        assert seen.old(id, 86_400) == old


def test_what_is_forgotten_counts_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sightings, "_MOST", 2)
    seen = Sightings()
    for name in ("a", "b", "a", "c"):
        seen.seconds(name)
    with later(monkeypatch, 60):
        assert seen.seconds("a") > 50
        assert seen.seconds("b") == 0
