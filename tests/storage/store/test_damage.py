"""A record that cannot be read is named, and stops nothing else."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from storage.errors import StoreDamaged
from storage.names import new_id
from storage.records import File, JobState
from storage.repositories.aliases import Alias
from storage.repositories.api_keys import ApiKeys, Scope
from storage.repositories.datasets import Datasets
from storage.repositories.datasets.quota import Quota
from storage.repositories.job_list import JobList
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import KeyMissing, Store, json_records, open_store
from storage.upkeep.cleanup import GarbageCollector
from storage.upkeep.inspection import inspect_records
from tests.stores import make_dataset, submit, success
from tests.there import there

DAMAGED = [
    b"",
    b'{"version": 1, "updated',
    b"[]",
    b'{"version":"one","updated_at":"2026-01-01T00:00:00Z"}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_record_is_named(store: Store, content: bytes) -> None:
    store.create("models/news/aliases/live.json", content)
    with pytest.raises(StoreDamaged, match=r"models/news/aliases/live\.json is damaged: it is not a valid record"):
        json_records.read(store, "models/news/aliases/live.json", Alias)
    assert list(store.damage.found) == ["models/news/aliases/live.json"]


def test_what_was_repaired_or_removed_counts_no_more(store: Store) -> None:
    with capture_logs() as lines:
        for key in ("a.json", "b.json", "c.json"):
            store.create(key, b"{")
            assert json_records.find_readable(store, key, Alias) is None
        store.delete("a.json")
        store.replace("b.json", b'{"version":1,"updated_at":"2026-01-01T00:00:00Z"}')
        store.damage.check_again()
    assert list(store.damage.found) == ["c.json"]
    logged = [(line["key"], line["log_level"]) for line in lines]
    assert logged == [(f"{name}.json", "error") for name in "abc"] + [("a.json", "info"), ("b.json", "info")], (
        "each change is logged once"
    )


def test_a_damaged_file_counts_until_it_is_restored(any_store: Store, tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"content")
    file = any_store.upload("f", tmp_path / "content")
    other = open_store(f"file://{tmp_path}/store") if (tmp_path / "store").exists() else any_store
    named = File(key="f", sha256="0" * 64, bytes=7)
    with pytest.raises(StoreDamaged):
        other.local(named)
    assert "checksum" in other.damage.found["f"]
    assert other.local(file).read_bytes() == b"content"
    assert other.damage.found == {}


def test_a_file_that_is_damaged_after_it_was_read_is_found(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    (tmp_path / "content").write_bytes(b"content")
    file = store.upload("f", tmp_path / "content")
    path = store.local(file)
    store.replace("f", b"another")
    os.utime(path, (1, 1))  # the clock may be too coarse to tell the two writes apart
    with pytest.raises(StoreDamaged, match="checksum"):
        store.local(file)


def test_a_file_that_may_not_be_read_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"file://{tmp_path}/store")
    store.create("a/b", b"x")
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    with pytest.raises(StoreDamaged, match="a/b is damaged: it cannot be read: Permission denied"):
        store.read("a/b")


def test_what_cannot_be_a_key_is_no_child(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    store.create("m/1.json", b"x")
    for name in ("1.json~", "#1.json#", ".hidden", "a copy.json"):
        (tmp_path / "store" / "m" / name).write_bytes(b"x")
    (tmp_path / "store" / "m" / "lost+found").mkdir()
    assert store.children("m") == ["1.json"]


FOREIGN = ("lost+found", "1.json~", "notes.txt", "1.json.bak", "old")


def foreign_among_all(root: Path) -> None:
    """Files and folders of others, in every folder of a store."""
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir() and ".staging" not in path.parts)]:
        for name in FOREIGN:
            (folder / name).mkdir() if name == "lost+found" else (folder / name).write_bytes(b"\x00")


@pytest.fixture
def filled(store: Store) -> tuple[str, str, str]:
    """A store with something of each sort: ids of a dataset, of a finished job and of an unfinished one."""
    dataset = make_dataset(store).id
    done, jobs = submit(store, dataset=dataset), Jobs(store)
    jobs.claim_attempt(done, "w")
    jobs.record_outcome(done, success(store))
    jobs.publish(done)
    Models(store).set_alias("news", "live", 1)
    ApiKeys(store).create("portal", {Scope.PREDICT})
    Datasets(store).record_suggested(dataset, {})
    store.create(f"deleting/{new_id('ds')}.{new_id('deletion')}", b"")
    store.create(f"models/news/aliasing/7.{new_id('aliasing')}", b"")
    return dataset, done, submit(store, dataset=dataset, model="other")


def test_foreign_files_stop_nothing(store: Store, tmp_path: Path, filled: tuple[str, str, str]) -> None:
    dataset, done, waiting = filled
    foreign_among_all(tmp_path / "store")
    jobs, models, datasets = Jobs(store), Models(store), Datasets(store, abandoned_seconds=0)
    assert [job.request.id for job in jobs.every()] == [waiting, done]
    assert [job.request.id for job in JobList(jobs).page()[0]] == [waiting, done]
    assert [id for id, _ in jobs.open_jobs()] == [waiting]
    assert jobs.get(done).state is JobState.SUCCEEDED
    assert jobs.get(done).attempt == 1
    assert [version.number for version in models.versions("news")] == [1]
    assert models.aliases("news") == {"live": 1}
    assert [listed.key.name for listed in ApiKeys(store).every()] == ["portal"]
    assert [each.id for each in datasets.every()] == [dataset]
    assert Quota(store, 10, None).used()[0] == 1
    models.remove_abandoned()
    datasets.remove_abandoned()
    datasets.recover_deletions()
    GarbageCollector(store, jobs, models, leftover_seconds=0).remove_abandoned()
    jobs.cancel(waiting)
    datasets.delete(dataset)
    assert all((tmp_path / "store" / "jobs" / done / "attempts" / name).exists() for name in FOREIGN), (
        "what is not ours stays"
    )


def test_the_others_go_on(store: Store, filled: tuple[str, str, str]) -> None:
    dataset, done, waiting = filled
    broken = submit(store, dataset=dataset)
    store.replace(f"jobs/{broken}/request.json", b"{")
    torn = make_dataset(store).id
    store.replace(f"datasets/{torn}/manifest.json", b"{")
    store.create(f"datasets/{dataset}/suggested/{'0' * 64}.json", b"{")
    store.replace(f"jobs/{done}/attempts/1.json", b"{")
    store.create("models/news/versions/2.json", b"{")
    store.create("models/news/aliases/torn.json", b"{")
    store.create(f"keys/{new_id('key')}.json", b"{")
    jobs, models, datasets = Jobs(store), Models(store), Datasets(store)
    assert [job.request.id for job in jobs.every()] == [waiting, done]
    assert [job.request.id for job in JobList(jobs).page()[0]] == [waiting, done]
    assert [job.request.id for job in jobs.unfinished()] == [waiting]
    with pytest.raises(StoreDamaged, match=broken):
        jobs.get(broken)
    assert jobs.get(done).state is JobState.SUCCEEDED, "how it ended does not depend on the record of its attempt"
    assert [each.id for each in datasets.list()[0]] == [dataset]
    with pytest.raises(StoreDamaged, match=torn):
        datasets.get(torn)
    assert Quota(store, 10, None).used()[0] == 1
    assert datasets.relabel(dataset, {"d0": "yes"}).n_labeled == 12
    assert [version.number for version in models.versions("news")] == [1]
    assert (models.resolve("news").number, models.resolve("news@live").number) == (1, 1)
    assert models.aliases("news") == {"live": 1}
    with pytest.raises(StoreDamaged, match=r"torn\.json"):
        models.resolve("news@torn")
    assert [listed.key.name for listed in ApiKeys(store).every()] == ["portal"]
    jobs.cancel(waiting)
    datasets.delete(dataset)
    found = inspect_records(store).damaged
    assert len(found) == 7
    assert all(key in detail for key, detail in found.items())


def test_what_is_damaged_can_be_removed(store: Store, filled: tuple[str, str, str], models: Models) -> None:
    store.create("models/news/versions/2.json", b"{")
    store.create("models/news/aliases/torn.json", b"{")
    models.delete_alias("news", "torn")
    models.delete_version("news", 2)
    assert models.resolve("news").number == 1
    store.create("models/news/versions/3.json", b"{")
    models.delete("news")
    assert list(models.every()) == []
    with pytest.raises(KeyMissing):
        store.read("models/news/aliases/torn.json")


def test_a_version_that_cannot_be_read_keeps_no_other_job_from_being_published(store: Store) -> None:
    jobs, models = Jobs(store), Models(store)
    store.create("models/news/versions/1.json", b"{")
    id = submit(store)
    jobs.claim_attempt(id, "w")
    jobs.record_outcome(id, success(store).model_copy(update={"versions_before": models.last_number("news")}))
    version = there(jobs.publish(id))
    assert (version.number, jobs.get(id).version, models.resolve("news").number) == (2, 2, 2)


def test_a_copied_key_does_not_outlive_its_revocation(store: Store) -> None:
    keys = ApiKeys(store)
    made, _ = keys.create("portal", {Scope.PREDICT})
    store.create(f"keys/{new_id('key')}.json", store.read(f"keys/{made.id}.json"))
    keys.revoke(made.id)
    assert [(listed.key.id, listed.revoked) for listed in keys.every()] == [(made.id, True)]


def test_a_revocation_counts_whatever_cannot_be_read(store: Store) -> None:
    keys = ApiKeys(store)
    made, _ = keys.create("portal", {Scope.PREDICT})
    assert [listed.revoked for listed in keys.every()] == [False]
    store.create(f"keys/{new_id('key')}.json", b"")
    keys.revoke(made.id)
    assert [listed.revoked for listed in keys.every()] == [True]
    assert len(store.damage.found) == 1


def test_a_digit_of_a_record_that_flips_is_found_and_a_record_without_checksum_is_read(store: Store) -> None:
    written = json_records.encode(File(key="k", sha256="0", bytes=12))
    assert File.model_validate_json(written).bytes == 12, "as earlier versions read it"
    store.create("f", written.strip())
    assert json_records.read(store, "f", File).bytes == 12
    store.replace("f", written.replace(b"12", b"13"))
    with pytest.raises(StoreDamaged, match="checksum"):
        json_records.read(store, "f", File)
