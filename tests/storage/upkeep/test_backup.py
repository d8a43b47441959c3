"""Backup and restore: complete or not at all, of a folder and a bucket, whatever happens in the store meanwhile."""

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import obstore
import pytest
from obstore.store import ObjectStore as Client

from core.problem import Status
from storage.records import Version
from storage.repositories.aliases import Aliases
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import KeyMissing, Store, json_records, open_raw, open_store
from storage.upkeep import backup
from storage.upkeep.backup import BackupFailed, back_up, restore
from storage.upkeep.cleanup import GarbageCollector
from tests.stores import make_dataset, no_file_beyond, s3_options, submit, success

VERSION = Version(
    name="m",
    number=1,
    job="job-1",
    dataset="d",
    algorithm="svm",
    options={},
    classes=["no", "yes"],
    n_features=2,
    objective=0.5,
    status=Status.CONVERGED,
    created_at=datetime.now(UTC),
    files={},
)
KEYS = {
    key: key.encode() * 5
    for key in (
        *("models/m/aliases/live.json", "models/m/deleted/1.json", "keys/k.json", "idempotency/i.json"),
        *(
            f"jobs/job-1/{name}"
            for name in ("request.json", "outcome.json", "published.json", "attempts/1.json", "attempts/1/model.json")
        ),
        *("jobs/job-2/request.json", "jobs/job-2/cancel.json", "datasets/d/manifest.json", "datasets/d/rows.npy"),
    )
} | {"open/job-2": b"", "models/m/versions/1.json": json_records.encode(VERSION)}
Open = Callable[[str], tuple[str, dict[str, str]]]


@pytest.fixture(params=["folder", "bucket"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Client of a new store, by name."""
    if request.param == "folder":
        return lambda name: (f"file://{tmp_path}/{name}", {})
    endpoint = request.getfixturevalue("s3_endpoint")

    def made(name: str) -> tuple[str, dict[str, str]]:
        bucket = f"{name}{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]}"
        httpx.put(f"{endpoint}/{bucket}").raise_for_status()
        return f"s3://{bucket}/deep/prefix", s3_options(endpoint)

    return made


def filled(url: str, options: dict[str, str], cache: Path) -> None:
    store = open_store(url, cache, options=options)
    for key, data in KEYS.items():
        store.replace(key, data)
    for key in ("deleting/mark", "models/m/aliasing/mark", "jobs/job-2/attempts/1.json", "open/job-3"):
        store.replace(key, b"not copied")


def empty(url: str, options: dict[str, str]) -> bool:
    return not any(entries for entries in obstore.list(open_raw(url, options)))


def test_what_is_backed_up_is_restored_elsewhere(address: Open, tmp_path: Path) -> None:
    url, options = address("here")
    filled(url, options, tmp_path / "cache")
    path = tmp_path / "backup.tar"
    copied = back_up(open_raw(url, options), path)
    assert copied == (len(KEYS), sum(map(len, KEYS.values())))
    assert path.stat().st_mode & 0o077 == 0
    other, options = address("there")
    assert restore(open_raw(other, options), path) == copied
    store = open_store(other, tmp_path / "cache2", options=options)
    assert {key: store.read(key) for key in KEYS} == KEYS
    with pytest.raises(BackupFailed, match="the store is not empty, it has models, keys"):
        restore(open_raw(other, options), path)
    assert {key: store.read(key) for key in KEYS} == KEYS


def test_what_cannot_be_restored_leaves_the_store_empty(address: Open, tmp_path: Path) -> None:
    url, options = address("here")
    path = tmp_path / "backup.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("models/m/versions/1.json", "../outside"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
    with pytest.raises(BackupFailed, match=r"'../outside' is not of a store"):
        restore(open_raw(url, options), path)
    assert empty(url, options)


def test_a_backup_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    path, whole = tmp_path / "short.tar", tmp_path / "whole.tar"
    filled(f"file://{tmp_path}/store", {}, tmp_path)
    back_up(open_raw(f"file://{tmp_path}/store"), whole)
    content = whole.read_bytes()
    end = content.index(b"backup.json")
    for length in (*range(0, end + 1, 512), *range(100, end, 1700)):  # where a member ends, and anywhere
        path.write_bytes(content[:length])
        with pytest.raises(BackupFailed, match="nothing was restored"):
            restore(open_raw(f"file://{tmp_path}/other"), path)
        assert empty(f"file://{tmp_path}/other", {})
    restore(open_raw(f"file://{tmp_path}/other"), whole)


@pytest.mark.parametrize(
    "end",
    [b"", b"[]", b"7", b'{"files": "many"}', b'{"files": 1, "bytes": 2, "format": []}', b"[" * 100_000, b"1" * 10_000],
)
def test_an_end_that_no_backup_has_is_refused(tmp_path: Path, end: bytes) -> None:
    file = tmp_path / "odd.tar"
    with tarfile.open(file, "w") as tar:
        backup._add(tar, "keys/k.json", b"{}")
        backup._add(tar, "backup.json", end)
    store = open_raw(f"file://{tmp_path}/store")
    with pytest.raises(BackupFailed, match="nothing was restored"):
        restore(store, file)
    assert list(backup._keys(store, "keys")) == []


@pytest.mark.parametrize("compression", ["xz", "gz", "bz2"])
def test_a_compressed_file_is_not_unpacked(tmp_path: Path, compression: str) -> None:
    """A bomb is some kilobytes, and would fill the disk."""
    file = tmp_path / "bomb.tar"
    with tarfile.open(file, f"w:{compression}") as tar:  # type: ignore[call-overload]
        backup._add(tar, "keys/k.json", b"{}")
    with pytest.raises(BackupFailed, match="nothing was restored"):
        restore(open_raw(f"file://{tmp_path}/store"), file)


def test_a_damaged_record_keeps_nothing_from_being_copied(tmp_path: Path) -> None:
    filled(f"file://{tmp_path}/store", {}, tmp_path)
    record, path = tmp_path / "store/models/m/versions/1.json", tmp_path / "backup.tar"
    damaged: list[str] = []
    record.write_bytes(record.read_bytes()[:9])
    copied = back_up(open_raw(f"file://{tmp_path}/store"), path, damaged.append)
    assert damaged == ["models/m/versions/1.json"]
    assert restore(open_raw(f"file://{tmp_path}/other"), path) == copied
    assert (tmp_path / "other/models/m/versions/1.json").read_bytes() == record.read_bytes()


def test_a_backup_is_whole_or_there_is_none(tmp_path: Path) -> None:
    store, path = open_raw(f"file://{tmp_path}/store"), tmp_path / "backup.tar"
    with pytest.raises(BackupFailed, match="there is nothing in the store"):
        back_up(store, path)
    filled(f"file://{tmp_path}/store", {}, tmp_path)
    with no_file_beyond(1024), pytest.raises(BackupFailed, match="nothing was written to"):
        back_up(store, path)
    with pytest.raises(BackupFailed, match=r"No such file or directory.*: nothing was written to"):
        back_up(store, tmp_path / "none" / "backup.tar")
    path.write_bytes(b"an older one")
    for there in (path, Path()):
        with pytest.raises(BackupFailed, match="exists; choose another file"):
            back_up(store, there)
    assert path.read_bytes() == b"an older one"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup.tar", "store"]


def finish(store: Store, id: str, attempt: int = 1) -> None:
    Jobs(store).claim_attempt(id, "w", attempt)
    Jobs(store).record_outcome(id, success(store, attempt, id))


def life(store: Store) -> Iterator[str]:
    """Steps in the life of a store: an old and a new job become versions, and the old one's are deleted.

    Yields each step.
    """
    old = make_dataset(store)
    first = submit(store, dataset=old.id)
    yield "there is a job"
    finish(store, first)
    yield "it has an outcome"
    Jobs(store).publish(first)
    Models(store).set_alias("news", "live", 1)
    yield "it has a version, which has an alias"
    dataset = make_dataset(store)
    yield "there is another dataset"
    second = submit(store, dataset=dataset.id)
    yield "there is another job"
    finish(store, second)
    yield "the other has an outcome"
    Jobs(store).publish(second)
    yield "the other has a version"
    Models(store).set_alias("news", "live", 2)
    yield "the alias has moved"
    Jobs(store).delete(first)
    yield "the first job is deleted"
    Models(store).delete_version("news", 1)
    yield "its version is deleted"
    Datasets(store).delete(old.id)
    yield "its dataset is deleted"


def known(store: Store) -> set[str]:
    return {*(job.request.id for job in Jobs(store).every()), *(dataset.id for dataset in Datasets(store).every())}


def wrong(store: Store, kept: set[str], alive: set[str]) -> Iterator[str]:
    """Faults of a restored store: ``kept`` existed all the time, ``alive`` when the copy ended."""
    jobs, models, datasets = Jobs(store), Models(store), Datasets(store)
    made = store.children("models/news/versions")
    yield from (f"version {name} was never made" for name in store.children("models/news/deleted") if name not in made)
    for alias in store.children("models/news/aliases"):
        if f"{Aliases(store).find('news', alias.removesuffix('.json')).version}.json" not in made:
            yield f"{alias} is of no version"
    yield from (f"{id} is missing" for id in kept - known(store))
    for dataset in datasets.every():
        datasets.open(dataset.id)
    for job in list(jobs.every()):
        if not job.state.final:
            if job.request.id not in jobs.unfinished_ids():
                yield f"{job.request.id} is {job.state.value} and nobody looks after it"
            if job.request.dataset in alive - {dataset.id for dataset in datasets.every()}:
                yield f"{job.request.id} has no dataset"
            if job.outcome is None:
                finish(store, job.request.id, job.attempt + 1)
            jobs.publish(job.request.id)
    GarbageCollector(store, jobs, models, leftover_seconds=0).remove_abandoned()
    versions: list[Version] = list(models.every_version())
    for version in versions:
        for file in version.files.values():
            try:
                store.local(file)
            except KeyMissing:
                yield f"{file.key} of version {version.number} is missing"
    for job in jobs.every():
        numbers = [version.number for version in versions if version.job == job.request.id]
        if job.version is None or not (models.deleted("news", job.version) or numbers == [job.version]):
            yield f"{job.request.id} tells of version {job.version} and has {numbers}"


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The store after each step of its life."""
    folder = tmp_path_factory.mktemp("states")
    store = open_store(f"file://{folder}/living")
    return [
        Path(shutil.copytree(folder / "living", folder / f"{number}-{step}")) for number, step in enumerate(life(store))
    ]


def back_up_changing(earlier: Client, later: Client, after: int, path: Path, patch: pytest.MonkeyPatch) -> int:
    """Back up a store that changes after so many reads; returns the number of reads."""
    reads = 0

    def reading(act: Callable[..., Any]) -> Callable[..., Any]:
        def read(_: Client, *given: Any, **named: Any) -> Any:
            nonlocal reads
            reads += 1
            return act(later if reads > after else earlier, *given, **named)

        return read

    acts = {name: reading(getattr(obstore, name)) for name in ("get", "list", "list_with_delimiter")}
    with patch.context() as patched:
        patched.setattr(backup, "obstore", SimpleNamespace(**acts))
        back_up(earlier, path)
    return reads


@pytest.mark.parametrize("earlier", range(10))
def test_a_backup_names_nothing_that_it_has_not(
    earlier: int, states: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any read the store goes from any state of its life to the next, or to the last."""
    path, copy = tmp_path / "backup.tar", tmp_path / "restored"
    for flush in ("sync", "fsync"):
        monkeypatch.setattr(os, flush, lambda *_: None)
    for later in {earlier + 1, len(states) - 1}:
        first, last = f"file://{states[earlier]}", f"file://{states[later]}"
        there, alive = known(open_store(first)), known(open_store(last))
        after, reads = 0, 1
        while after < reads:
            after += 1
            reads = back_up_changing(open_raw(first), open_raw(last), after, path, monkeypatch)
            restore(open_raw(f"file://{copy}"), path)
            assert list(wrong(open_store(f"file://{copy}"), there & alive, alive)) == [], (
                states[earlier].name,
                states[later].name,
                after,
            )
            shutil.rmtree(copy)
            path.unlink()
