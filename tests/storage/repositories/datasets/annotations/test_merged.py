"""Long logs: merged entries are read instead of their records, and many may append at once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from storage.errors import StoreFull
from storage.repositories.datasets.annotations import log
from storage.repositories.datasets.annotations.answers import Annotation
from storage.repositories.datasets.annotations.log import AnnotationLog
from storage.store import Store

ENOUGH = 5
RECORDS = "datasets/ds-1/annotations"
MERGED = "datasets/ds-1/merged"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "ENOUGH", ENOUGH)


def entries(*ids: str) -> list[Annotation]:
    return [
        Annotation(id=id, document="d", position=0, action="label", label="yes", at=datetime(2026, 1, 1, tzinfo=UTC))
        for id in ids
    ]


def filled(store: Store) -> AnnotationLog:
    """A log of thirteen entries, in records of one and of two in turn."""
    log = AnnotationLog(store, "ds-1")
    for first in range(0, 12, 3):
        log.append(entries(f"{first}"))
        log.append(entries(f"{first + 1}", f"{first + 2}"))
    log.append(entries("12"))
    return log


def ids(log: AnnotationLog) -> list[str]:
    return [entry.id for _, entry in log.between(0, 1000)]


def test_merged_entries_are_read_instead_of_their_records(any_store: Store) -> None:
    expected = ids(filled(any_store))
    assert expected == [str(k) for k in range(13)]
    # records of 1, 2, 1 and 2 entries are enough together, and so are the next four
    assert any_store.children(MERGED) == ["0000000001.json", "0000000007.json"]
    last = any_store.children(RECORDS)[-1]
    for name in any_store.children(RECORDS)[:-1]:
        any_store.delete(f"{RECORDS}/{name}")
    fresh = AnnotationLog(any_store, "ds-1")
    assert ids(fresh) == expected
    assert fresh.append(entries("3", "new")) == (14, 1)
    assert [number for number, _ in fresh.between(12, 5)] == [13, 14]
    assert any_store.children(RECORDS)[0] == last


@pytest.mark.parametrize("damaged", ["0000000001.json", "0000000007.json"])
def test_what_cannot_be_read_merged_is_read_from_its_records(any_store: Store, damaged: str) -> None:
    expected = ids(filled(any_store))
    any_store.replace(f"{MERGED}/{damaged}", b"{")
    assert ids(AnnotationLog(any_store, "ds-1")) == expected


def test_a_log_of_an_earlier_version_is_merged_by_the_next_entry(any_store: Store) -> None:
    expected = ids(filled(any_store))
    before = {name: any_store.read(f"{MERGED}/{name}") for name in any_store.children(MERGED)}
    for name in before:
        any_store.delete(f"{MERGED}/{name}")
    log = AnnotationLog(any_store, "ds-1")
    log.append(entries("13"))
    assert {name: any_store.read(f"{MERGED}/{name}") for name in any_store.children(MERGED)} == before
    assert ids(AnnotationLog(any_store, "ds-1")) == [*expected, "13"]


def test_nothing_is_merged_after_a_record_that_cannot_be_read(any_store: Store) -> None:
    log = AnnotationLog(any_store, "ds-1")
    log.append(entries("0"))
    log.append(entries("1"))
    any_store.replace(f"{RECORDS}/0000000001.json", b"{")
    fresh = AnnotationLog(any_store, "ds-1")
    fresh.append(entries(*(f"{k}" for k in range(2, 20))))
    assert any_store.children(MERGED) == []
    assert ids(fresh) == [f"{k}" for k in range(1, 20)]


def test_an_answer_is_kept_where_there_is_no_room_to_merge(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    log, create = AnnotationLog(any_store, "ds-1"), any_store.create

    def full(key: str, data: bytes) -> bool:
        if key.startswith(MERGED):
            raise StoreFull("no room")
        return create(key, data)

    with monkeypatch.context() as patch:
        patch.setattr(any_store, "create", full)
        assert log.append(entries(*(f"{k}" for k in range(ENOUGH)))) == (ENOUGH, ENOUGH)
    assert any_store.children(MERGED) == []
    log.append(entries("later"))
    assert any_store.children(MERGED) == ["0000000001.json"]
    assert len(ids(AnnotationLog(any_store, "ds-1"))) == ENOUGH + 1


def test_a_hundred_append_at_once_and_nothing_is_lost(store: Store) -> None:
    """Each with a log of its own, as in processes of their own; each sends every request twice."""

    def append(person: int) -> list[int]:
        log = AnnotationLog(store, "ds-1")
        sent = [entries(f"{person}-{k}", f"{person}-{k}b") for k in range(2)]
        return [log.append(each)[0] for each in sent for _ in range(2)]

    with ThreadPoolExecutor(100) as people:
        counts = list(people.map(append, range(100)))
    assert all(one <= other for each in counts for one, other in pairwise(each))
    found = ids(AnnotationLog(store, "ds-1"))
    assert Counter(found) == Counter(
        f"{person}-{k}{part}" for person in range(100) for k in range(2) for part in ("", "b")
    )
    assert len(store.children(MERGED)) == 400 // (ENOUGH + 1)
