"""Files of a bucket that answers slowly, breaks off, or changes a byte on the way: they are resumed, and verified."""

import hashlib
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from storage.errors import StoreDamaged, StoreUnavailable
from storage.records import File
from storage.store import Store, bucket, open_store
from storage.store.local_files import reported_to
from tests.http_servers import Handler
from tests.stores import s3_options
from tests.waiting import SOON

CONTENT = bytes(range(256)) * 20_000
FILE = File(key="datasets/d/values.npy", sha256=hashlib.sha256(CONTENT).hexdigest(), bytes=len(CONTENT))
PART = len(CONTENT) // 4


class Bucket(ThreadingHTTPServer):
    """A bucket with one object; the test decides its answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.starts: list[int] = []
        """first byte of each request"""
        self.most = len(CONTENT)
        """bytes of each answer, after which the connection is silent"""
        self.breaks = False
        """whether the connection is closed instead"""
        self.wrong = 0
        """number of answers with a wrong byte"""
        self.over = threading.Event()


class _Handler(Handler):
    server: Bucket

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(found[1]) if found else 0
        self.server.starts.append(start)
        rest = bytearray(CONTENT[start:])
        if self.server.wrong:
            self.server.wrong -= 1
            rest[-1] ^= 1
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Sun, 22 Nov 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(rest[: self.server.most])
        self.wfile.flush()
        if len(rest) > self.server.most and not self.server.breaks:
            self.server.over.wait(SOON)
        self.close_connection = True


@pytest.fixture
def server() -> Iterator[Bucket]:
    with Bucket() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def store(server: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(bucket, "_SILENCE", timedelta(seconds=0.5))
    monkeypatch.setattr(bucket, "_FETCH_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(bucket, "_PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(bucket, "_RETRIES", 0)
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    return open_store("s3://slow", tmp_path / "cache", options=s3_options(endpoint))


@pytest.mark.parametrize("breaks", [True, False])
def test_a_file_that_breaks_off_is_resumed_where_it_was(store: Store, server: Bucket, breaks: bool) -> None:
    server.most, server.breaks = PART, breaks
    reported: list[int] = []
    with reported_to(lambda file, n_bytes: reported.append(n_bytes)):
        assert store.local(FILE).read_bytes() == CONTENT
    assert server.starts[0] == 0
    assert server.starts == sorted(set(server.starts)), "no byte that has come is fetched again"
    assert len(server.starts) >= 4
    assert reported == sorted(reported)
    assert reported[-1] == len(CONTENT)


def test_files_have_a_time_out_on_silence_alone(store: Store) -> None:
    """One to the last byte would bound the size of a file."""
    assert isinstance(store, bucket.BucketStore)
    clients: list[Any] = [store._client, store._files]
    records, files = (client.client_options for client in clients)
    assert (records["timeout"], files["timeout"]) == ("30s", "1day")
    assert (records["read_timeout"], files["read_timeout"]) == ("30s", "500ms")


def test_what_was_fetched_is_kept_for_the_next_time(store: Store, server: Bucket) -> None:
    def stop_halfway(file: File, n_bytes: int) -> None:
        if n_bytes > PART:
            raise InterruptedError

    with reported_to(stop_halfway), pytest.raises(StoreUnavailable):
        store.local(FILE)
    assert store.local(FILE).read_bytes() == CONTENT
    assert PART < server.starts[1] < 2 * PART


def test_a_server_that_brings_nothing_is_given_up(store: Store, server: Bucket) -> None:
    server.most, server.breaks = 0, True
    with pytest.raises(StoreUnavailable, match=r"^cannot read .*values\.npy[^\n]*$"):
        store.local(FILE)


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_byte_that_changes_on_the_way_is_no_damage_in_the_store(store: Store, server: Bucket, wrong: int) -> None:
    server.wrong = wrong
    if wrong == 1:
        assert store.local(FILE).read_bytes() == CONTENT
    else:
        with pytest.raises(StoreDamaged):
            store.local(FILE)
