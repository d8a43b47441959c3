"""A bucket behind a proxy that makes it ill: promises hold, and unknown outcomes are said."""

import hashlib
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from storage.errors import StoreUnavailable
from storage.records import File
from storage.store import Store, bucket, open_store
from tests.stores import s3_options
from tests.storm.store_proxy import Ill, Illness, StoreProxy


@pytest.fixture
def proxy(s3_endpoint: str) -> Iterator[StoreProxy]:
    with StoreProxy(s3_endpoint) as proxy:
        yield proxy


@pytest.fixture
def name(tmp_path: Path, s3_endpoint: str) -> str:
    name = f"b{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]}"
    httpx.put(f"{s3_endpoint}/{name}")
    return name


@pytest.fixture
def well(s3_endpoint: str, name: str, tmp_path: Path) -> Store:
    """The bucket without the proxy."""
    return open_store(f"s3://{name}/p", tmp_path / "direct", options=s3_options(s3_endpoint))


@pytest.fixture
def store(proxy: StoreProxy, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The bucket through the proxy, with time-outs for tests."""
    monkeypatch.setattr(bucket, "_TIMEOUT", timedelta(seconds=1.0))
    monkeypatch.setattr(bucket.client_of, "__defaults__", (timedelta(seconds=1.0), timedelta(seconds=1.0)))
    monkeypatch.setattr(bucket, "_SILENCE", timedelta(seconds=0.5))
    monkeypatch.setattr(bucket, "_FETCH_PAUSE_SECONDS", 0.01)
    return open_store(f"s3://{name}/p", tmp_path / "cache", options=s3_options(proxy.endpoint))


def uploaded(store: Store, tmp_path: Path) -> tuple[File, bytes]:
    content = os.urandom(3_000_000)
    (tmp_path / "content").write_bytes(content)
    return store.upload("f", tmp_path / "content"), content


def test_a_slow_bucket_is_only_slow(store: Store, proxy: StoreProxy) -> None:
    with proxy.ill(Illness(Ill.SLOW, seconds=0.05)):
        assert store.create("a", b"1")
        assert not store.create("a", b"2")
        assert store.read("a") == b"1"
        assert store.children("nothing") == []


def test_a_create_whose_answer_was_lost_is_ours(store: Store, well: Store, proxy: StoreProxy) -> None:
    with proxy.ill(Illness(Ill.LOST, times=1)):
        assert store.create("jobs/a/outcome.json", b"mine")
    assert well.read("jobs/a/outcome.json") == b"mine"
    assert not well.create("jobs/a/outcome.json", b"of another")


def test_a_create_that_another_has_won_is_not_ours_however_often_answers_are_lost(
    store: Store, well: Store, proxy: StoreProxy
) -> None:
    assert well.create("jobs/a/outcome.json", b"of another")
    with proxy.ill(Illness(Ill.LOST, times=1)):
        assert not store.create("jobs/a/outcome.json", b"mine")


def test_a_silent_bucket_is_away_after_its_time_out_and_back_at_once(store: Store, proxy: StoreProxy) -> None:
    store.create("a", b"1")
    began = time.monotonic()
    with proxy.ill(Illness(Ill.SILENT)), pytest.raises(StoreUnavailable):
        store.read("a")
    assert time.monotonic() - began < 30
    assert store.read("a") == b"1"


@pytest.mark.parametrize(
    "illness",
    [Illness(Ill.HALF, 3, n_bytes=700_000), Illness(Ill.WRONG, 1, n_bytes=60_000), Illness(Ill.SLOW, seconds=0.005)],
)
def test_a_file_arrives_whole_all_the_same(
    store: Store, well: Store, proxy: StoreProxy, tmp_path: Path, illness: Illness
) -> None:
    file, content = uploaded(well, tmp_path)
    with proxy.ill(illness):
        assert store.local(file).read_bytes() == content
    assert store.damage.found == {}
