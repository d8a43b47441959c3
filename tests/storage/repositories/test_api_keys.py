"""API keys are stored as digests, found by their id, and never valid again once revoked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.errors import InvalidName, NotFound
from storage.repositories.api_keys import ApiKey, ApiKeys, Scope, find
from storage.store import Store

NOW = datetime.now(UTC)


def valid(keys: ApiKeys) -> dict[str, ApiKey]:
    return {listed.key.id: listed.key for listed in keys.every() if not listed.revoked}


def test_a_key_is_found_by_its_text_and_by_nothing_else(store: Store) -> None:
    keys = ApiKeys(store)
    made, text = keys.create("portal", {Scope.PREDICT})
    other, _ = keys.create("trainer", {Scope.TRAIN, Scope.ADMIN})
    assert find(text, valid(keys), NOW) == made
    assert other.scopes == [Scope.ADMIN, Scope.TRAIN]
    mark, id, secret = text.split("_")
    wrong = [
        "",
        mark,
        f"{mark}_{id}",
        f"{mark}_{id}_",
        f"{mark}_{other.id}_{secret}",
        f"xx_{id}_{secret}",
        f"{text}x",
        text[:-1],
        f"{mark}_{id}_{made.sha256}",
    ]
    assert [each for each in [*wrong, "hm_é_ü", "_" * 500] if find(each, valid(keys), NOW)] == []
    assert len(secret) * 5 >= 256


def test_the_secret_is_not_kept(store: Store, tmp_path: Path) -> None:
    _, text = ApiKeys(store).create("portal", {Scope.PREDICT})
    secret = text.rpartition("_")[2]
    kept = [path.read_text() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert any("portal" in content for content in kept)
    assert not any(secret in content for content in kept)


def test_a_key_ends_with_its_time(store: Store) -> None:
    keys = ApiKeys(store)
    made, text = keys.create("visitor", {Scope.PREDICT}, NOW + timedelta(days=1))
    assert find(text, valid(keys), NOW + timedelta(hours=23)) == made
    assert find(text, valid(keys), NOW + timedelta(hours=25)) is None
    assert [listed.state(NOW + timedelta(days=2)) for listed in keys.every()] == ["expired"]


@pytest.mark.parametrize("id", ["key-nothing", "../keys", "", "key-000000000000000000000000"])
def test_what_is_no_key_cannot_be_revoked(store: Store, id: str) -> None:
    with pytest.raises(NotFound):
        ApiKeys(store).revoke(id)
    assert store.children("keys") == []


def test_names_are_checked(store: Store) -> None:
    with pytest.raises(InvalidName):
        ApiKeys(store).create("a/b", {Scope.ADMIN})
