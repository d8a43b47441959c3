"""The guarantees of a store, in a folder and in S3 (a real HTTP server)."""

import errno
import hashlib
import os
from pathlib import Path
from stat import S_IMODE
from typing import Any

import obstore
import pytest

from core.documents.kinds import NamedRows
from storage.errors import StoreFull, StoreUnavailable
from storage.records import File
from storage.repositories.datasets import Batch, Datasets
from storage.store import KeyMissing, Store, open_store
from storage.store.bucket import BucketStore
from storage.store.folder import FolderStore
from tests.calls import meanwhile, noted
from tests.stores import make_dataset, make_s3, rows, s3_options
from tests.waiting import at_once


def test_create_is_for_the_first(any_store: Store) -> None:
    assert any_store.create("jobs/a/request.json", b"first")
    assert not any_store.create("jobs/a/request.json", b"second")
    assert any_store.read("jobs/a/request.json") == b"first"


def test_of_many_creators_one_wins(any_store: Store) -> None:
    won = at_once(8, lambda number: any_store.create("claim", str(number).encode()))
    assert [str(number).encode() for number in range(8) if won[number]] == [any_store.read("claim")]


def test_a_repeated_create_is_ours_if_the_first_reply_was_lost(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both repeat a call after a lost reply by themselves: the system a call of a network folder, the client a request
    to a bucket.
    """
    link, put = os.link, obstore.put

    def link_twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    def put_twice(*arguments: Any, **options: Any) -> None:
        put(*arguments, **options)
        put(*arguments, **options)

    monkeypatch.setattr(os, "link", link_twice)
    monkeypatch.setattr(obstore, "put", put_twice)
    assert any_store.create("jobs/a/outcome.json", b"mine")
    assert not any_store.create("jobs/a/outcome.json", b"of another")
    assert any_store.read("jobs/a/outcome.json") == b"mine"


def test_what_is_deleted_while_it_is_created_is_created(
    tmp_path: Path, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_s3(s3_endpoint, tmp_path)
    store.create("mark", b"of another")
    meanwhile(monkeypatch, BucketStore, "read", lambda: store.delete("mark"))
    assert store.create("mark", b"mine")
    assert store.read("mark") == b"mine"


def test_empty_marks_are_created_once(any_store: Store) -> None:
    assert any_store.create("open/a", b"")
    assert not any_store.create("open/a", b"")
    assert any_store.read("open/a") == b""


def test_replace(any_store: Store) -> None:
    any_store.replace("alias", b"1")
    any_store.replace("alias", b"22")
    assert any_store.read("alias") == b"22"


def test_missing_keys(any_store: Store) -> None:
    any_store.create("a/b", b"x")
    for key in ("nothing", "a", "a/b/c"):
        with pytest.raises(KeyMissing):
            any_store.read(key)
        assert not any_store.exists(key)
    assert any_store.exists("a/b")


def test_children_are_one_level_and_sorted(any_store: Store) -> None:
    for key in ("m/b/1.json", "m/a/1.json", "m/a/x/y", "m/c.json", "mm/z"):
        any_store.create(key, b"x")
    assert any_store.children("m") == ["a", "b", "c.json"]
    assert any_store.children("m/a") == ["1.json", "x"]
    assert any_store.children("nothing") == []


def test_the_last_children_are_listed_alone(any_store: Store) -> None:
    for key in ("m/a/1", "m/b/1", "m/b/x/y", "m/c", "m/d/1", "m/d/2", "n/z"):
        any_store.create(key, b"x")
    assert any_store.children("m", "b") == ["c", "d"]
    assert any_store.children("m", "b0") == ["c", "d"]
    assert any_store.children("m", "d") == []
    assert any_store.children("nothing", "a") == []


def test_delete_removes_a_key_and_all_below(any_store: Store) -> None:
    for key in ("m/a/1", "m/a/2", "m/ab", "n"):
        any_store.create(key, b"x")
    any_store.delete("m/a")
    any_store.delete("n")
    any_store.delete("never-was")
    assert any_store.children("m") == ["ab"]
    assert not any_store.exists("n")
    assert any_store.create("n", b"again")


def test_upload_and_local(any_store: Store) -> None:
    content = os.urandom(300_000)
    path = any_store.staging() / "file.bin"
    path.write_bytes(content)
    file = any_store.upload("datasets/d/file.bin", path)
    assert not path.exists()
    assert file == File(key="datasets/d/file.bin", sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    assert any_store.local(file).read_bytes() == content
    assert any_store.read(file.key) == content


def test_a_file_that_may_be_mapped_is_read_only(store: Store) -> None:
    path = store.staging() / "file.bin"
    path.write_bytes(b"content")
    path.chmod(0o640)
    assert S_IMODE(store.local(store.upload("f", path)).stat().st_mode) == 0o440


def test_local_of_nothing(any_store: Store) -> None:
    with pytest.raises(KeyMissing):
        any_store.local(File(key="datasets/d/none", sha256="0" * 64, bytes=1))


def test_a_damaged_file_is_refused(any_store: Store) -> None:
    any_store.create("f", b"damaged")
    with pytest.raises(StoreUnavailable, match="checksum"):
        any_store.local(File(key="f", sha256=hashlib.sha256(b"correct").hexdigest(), bytes=7))


@pytest.mark.parametrize(
    "key", ["../x", "a/../b", "/etc/passwd", "a//b", "", ".hidden", "a/.", "a\x00b", "a b", "a/" + "x" * 200]
)
def test_no_key_leaves_the_store(any_store: Store, key: str) -> None:
    for act in (any_store.read, any_store.exists, any_store.delete, any_store.children):
        with pytest.raises(ValueError, match="not a key"):
            act(key)
    with pytest.raises(ValueError, match="not a key"):
        any_store.create(key, b"x")


def test_writable(any_store: Store) -> None:
    assert any_store.writable()


@pytest.mark.parametrize("url", ["", "/tmp/x", "file://host/x", "http://x/y", "s3://", "gopher://x"])
def test_unknown_addresses(url: str) -> None:
    with pytest.raises(ValueError, match="file:///folder or s3://"):
        open_store(url)


def test_an_unreachable_service_is_unavailable(tmp_path: Path) -> None:
    store = open_store("s3://b/p", tmp_path, options=s3_options("http://127.0.0.1:9"))
    with pytest.raises(StoreUnavailable):
        store.read("a")
    assert not store.writable()


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    store = FolderStore(tmp_path / "store")
    assert not store.writable()
    with pytest.raises(StoreUnavailable):
        store.create("a", b"x")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_has_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    store = FolderStore(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFull, match=os.strerror(number)):
        store.create("a", b"x")
    assert not store.writable()


def test_what_may_not_be_looked_at_is_not_taken_for_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    store = FolderStore(tmp_path)
    store.create("a", b"x")
    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(StoreUnavailable, match="cannot read a: no"):
        store.exists("a")


def test_nothing_temporary_remains(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.create("a", b"x")
    store.create("a", b"y")
    store.replace("a", b"z")
    store.delete("a")
    (folder,) = [path for path in (tmp_path / ".staging").iterdir() if path.is_dir()]
    assert list(folder.iterdir()) == []


def test_a_crash_before_the_name_is_given_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)

    def crash(*_: object) -> None:
        raise OSError("crash")

    for step in ("link", "rename", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, crash)
            with pytest.raises(StoreUnavailable):
                store.replace("a", b"new") if step == "rename" else store.create("a", b"new")
        assert not store.exists("a")


def test_every_write_is_flushed_and_so_is_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)
    flushed = noted(monkeypatch, os, "fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    store.create("a/b/c.json", b"x")
    assert flushed[0].startswith(f"{tmp_path}/.staging/")
    assert {str(tmp_path), f"{tmp_path}/a", f"{tmp_path}/a/b"} <= set(flushed)
    assert flushed[-1] == f"{tmp_path}/a/b"


def test_sweep_removes_what_the_dead_have_left_and_nothing_else(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    mine = store.staging()
    child = os.fork()
    if child == 0:
        (store.staging() / "left").write_text("unfinished")
        os._exit(0)
    os.waitpid(child, 0)
    assert len([path for path in (tmp_path / ".staging").iterdir() if path.is_dir()]) == 2
    FolderStore(tmp_path).remove_abandoned()
    assert mine.is_dir()
    assert {path.name for path in (tmp_path / ".staging").iterdir()} == {mine.parent.name, f"{mine.parent.name}.lock"}


def test_the_cache_is_bounded_and_fetches_again(s3_endpoint: str, tmp_path: Path) -> None:
    store = make_s3(s3_endpoint, tmp_path, cache_bytes=2500)
    assert isinstance(store, BucketStore)
    files = []
    for number in range(4):
        path = store.staging() / "file"
        path.write_bytes(bytes([number]) * 1000)
        files.append(store.upload(f"f{number}", path))
    cached = tmp_path / "cache" / "files"
    assert sum(path.stat().st_size for path in cached.iterdir()) <= 2500
    assert [store.local(file).read_bytes()[0] for file in files] == [0, 1, 2, 3]
    assert sum(path.stat().st_size for path in cached.iterdir()) <= 2500


def test_what_was_opened_can_be_read_whatever_becomes_of_the_local_copies(s3_endpoint: str, tmp_path: Path) -> None:
    """A job reads names and ids long after it has opened them, while others may fill the cache."""
    store = make_s3(s3_endpoint, tmp_path, cache_bytes=1)
    named = NamedRows(rows({0: 1.0}, {0: 1.0, 1: 2.0}), ["first", "second\r"])
    dataset = make_dataset(store, [Batch(named, ["a", None], ["one\n", "zwölf"])])
    documents = Datasets(store).open(dataset.id)
    make_dataset(store)
    assert isinstance(documents.rows, NamedRows)
    assert list(documents.rows.names) == ["first", "second\r"]
    assert list(documents.ids) == ["one\n", "zwölf"]
    assert documents.ids.taken([1]) == ["zwölf"]
