"""The helper that reads files for ``app.codecs.tables.child``: a process with one thread.

It forks a child for each file. So a library is loaded once, and what a file does to it ends with the child.
"""

import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from msgspec import msgpack

from app.codecs.base import Reading
from app.codecs.tables.cells import Header
from app.codecs.tables.child import (
    MEMORY_BYTES,
    End,
    Exceeded,
    FileKind,
    FileRows,
    Invalid,
    Message,
    Stream,
    Task,
    receive,
    send,
)
from app.codecs.tables.workbook import read_workbook
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from storage.process.system import die_with_parent
from storage.repositories.datasets import Batch

with suppress(ImportError):  # pyarrow is an extra, without which no such file comes here
    from app.codecs.tables import arrow_rows

_IDLE_SECONDS = 60.0
_SECONDS, _BYTES_PER_SECOND = 20, 1 << 20
"""Seconds of a processor that a child may take, and bytes of the file for which it may take another."""
_REPEATS, _FEW_BYTES = 1000, 1 << 26
"""How many times its own bytes a file may unpack to, as much as gzip does, and bytes that it may unpack to in any case:
a dictionary repeats a long text without end."""


def main() -> None:
    """Fork a child for each file that comes over the socket at standard input, until none came for a minute."""
    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=0)
    requests.settimeout(_IDLE_SECONDS)
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(requests, 1, 2)
        except TimeoutError:
            return
        if not data:
            return
        if not os.fork():
            requests.close()
            with os.fdopen(descriptors[0], "rb") as file, socket.socket(fileno=descriptors[1]) as connection:
                connection.sendall(b"\0")
                with connection.makefile("rwb") as stream:
                    _serve(file, stream)
            os._exit(0)
        for each in descriptors:
            os.close(each)


def _serve(file: IO[bytes], stream: Stream) -> None:
    """Read the file within the limits, and send its rows."""
    size = os.fstat(file.fileno()).st_size
    limits = {
        resource.RLIMIT_DATA: MEMORY_BYTES,
        resource.RLIMIT_CPU: _SECONDS + size // _BYTES_PER_SECOND,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))
    task = msgpack.decode(receive(stream), type=Task)
    most = min(task.bounds.decompressed_bytes, max(_FEW_BYTES, _REPEATS * size))
    left = most
    for message in _messages(file, task):
        encoded = msgpack.encode(message)
        left -= len(encoded)
        if left < 0:
            send(stream, msgpack.encode(Exceeded("bytes in the decompressed body", most, "")))
            return
        send(stream, encoded)


def read_rows(file: IO[bytes], kind: FileKind, reading: Reading) -> Iterator[tuple[Batch, Header]]:
    """The documents of a file of this kind, some rows at a time, and the columns of the table."""
    return read_workbook(file, reading) if kind == "workbook" else arrow_rows.read_rows(file, kind, reading)


def _messages(file: IO[bytes], task: Task) -> Iterator[Message]:
    reading = Reading(task.bounds, columns=task.columns, separator=task.separator, extra=task.extra)
    warnings: list[str] = []
    try:
        for batch, header in read_rows(file, task.kind, reading):
            warnings = header.warnings
            assert isinstance(batch.rows, TextRows)
            weights = None if batch.weights is None else batch.weights.tolist()
            yield FileRows(
                list(batch.rows), batch.labels, batch.ids, batch.fields, batch.label_lists, batch.votes, weights
            )
    except InvalidDocuments as error:
        yield Invalid(error.detail, error.faults)
    except LimitExceeded as error:
        yield Exceeded(error.what, error.limit, error.remedy)
    else:
        yield End(warnings)


if __name__ == "__main__":
    main()
