"""Reads Arrow, Parquet and workbooks in a child process, with limits on its memory and its processor time.

Foreign compiled code reads them: one wrong byte of a Parquet file may end the process that does so. So a helper, which
this process starts at the first file, loads that code once and forks a child for each file. The child reads the file,
and sends rows, as MessagePack, over a socket. Its death is the end of one request.

The helper ends when nothing was read for a minute, and with this process. pyarrow, which reads Arrow and Parquet, is an
extra.
"""

import atexit
import io
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import IO, Any, Literal

import msgspec
import numpy as np
from msgspec import Struct, msgpack

from app.codecs.base import Bounds, Column, Extra, Format, Reading
from app.codecs.transport.whole_body import WholeBodyDecoder
from app.errors import UnsupportedMediaType
from core.documents.kinds import TextRows
from core.errors import Fault, InvalidDocuments, refused
from storage.errors import LimitExceeded, Unavailable
from storage.records import Label
from storage.repositories.datasets import Batch, ExtraFields
from storage.repositories.datasets.labels import LabelLists

FileKind = Literal["parquet", "stream", "workbook"]
MEMORY_BYTES = 5 << 28
"""Bytes of data that a child may have: a page or a batch may take 256 MiB, several times while it is unpacked."""
_LARGEST_MESSAGE = 1 << 28
HELPER = ("-m", "app.codecs.tables.helper")
"""Arguments of Python that start the helper."""
_ATTEMPTS = 3
"""attempts to reach a helper, which may end just then"""
_DIED = (
    "the process that read it has ended: the file is damaged, or takes more than "
    f"{MEMORY_BYTES >> 20} MiB of memory or too much time; write it again, in smaller row groups or batches, or in "
    "several files"
)
_LENGTH = struct.Struct("<I")


class Task(Struct):
    """Task of a child."""

    kind: FileKind
    bounds: Bounds
    columns: dict[Column, str]
    separator: str | None
    extra: Extra | None


class FileRows(Struct, array_like=True, tag=True):
    """Some rows of the file."""

    texts: Sequence[str]
    labels: Sequence[Label | None]
    ids: Sequence[str | None] | None
    fields: ExtraFields | None
    label_lists: LabelLists | None
    votes: Sequence[Mapping[str, Any] | None] | None
    weights: Sequence[float] | None


class End(Struct, array_like=True, tag=True):
    """The end of the file."""

    warnings: list[str]


class Invalid(Struct, array_like=True, tag=True):
    """The parts of an InvalidDocuments."""

    detail: str
    faults: Sequence[Fault]


class Exceeded(Struct, array_like=True, tag=True):
    """The parts of a LimitExceeded."""

    what: str
    limit: int
    remedy: str


Stream = io.BufferedRWPair
Message = FileRows | End | Invalid | Exceeded
_decode = msgpack.Decoder(Message).decode
_helper: tuple[subprocess.Popen[bytes], socket.socket] | None = None
_lock = threading.Lock()


class ChildDecoder(WholeBodyDecoder):
    """Yields batches of rows, when the body is whole."""

    def __init__(self, reading: Reading, kind: FileKind) -> None:
        super().__init__(reading)
        self._kind: FileKind = kind
        self._warnings: list[str] = []

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        with self.descriptor_file() as file:
            self._warnings = yield from _read_in_child(file, self._kind, self.reading)

    def warnings(self) -> Sequence[str]:
        """See Decoder: which columns are not learned from."""
        return self._warnings


def _read_in_child(file: IO[bytes], kind: FileKind, reading: Reading) -> Generator[Batch, None, list[str]]:
    """The documents of a file, and in the end notes for its sender.

    Raises InvalidDocuments, also where the child has died, and LimitExceeded.
    """
    file.flush()
    with closing(_new_child(file)) as connection, connection.makefile("rwb") as stream:
        task = Task(kind, reading.bounds, dict(reading.columns), reading.separator, reading.extra)
        try:
            send(stream, msgpack.encode(task))
            while True:
                message = _decode(receive(stream))
                match message:
                    case FileRows():
                        yield Batch(
                            TextRows.of(message.texts),
                            message.labels,
                            message.ids,
                            fields=message.fields,
                            label_lists=message.label_lists,
                            votes=message.votes,
                            weights=None if message.weights is None else np.array(message.weights, np.float64),
                        )
                    case End():
                        return message.warnings
                    case Invalid():
                        raise InvalidDocuments(message.detail, message.faults)
                    case Exceeded():
                        raise LimitExceeded(message.what, message.limit, message.remedy)
        except (OSError, EOFError, msgspec.MsgspecError):
            raise refused(_DIED) from None


def _new_child(file: IO[bytes]) -> socket.socket:
    """The connection to a new child, which has the file."""
    for _ in range(_ATTEMPTS):
        ours, theirs = socket.socketpair()
        with theirs:
            _send_to_helper(file, theirs)
        # a helper that ends has closed the connection, or never took it
        if ours.recv(1):
            return ours
        ours.close()
    raise Unavailable("no process can be started that reads such files")


def _send_to_helper(file: IO[bytes], connection: socket.socket) -> None:
    """Have the helper fork a child; where it does not answer, the next call starts another."""
    global _helper
    with _lock:
        if _helper is None:
            ours, theirs = socket.socketpair()
            with theirs:
                environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
                command = [sys.executable, "-P", *HELPER, str(os.getpid())]
                # what a reader writes as it dies is no line of a log
                process = subprocess.Popen(command, stdin=theirs.fileno(), stderr=subprocess.DEVNULL, env=environment)
            _helper = process, ours
        try:
            socket.send_fds(_helper[1], [b"\0"], [file.fileno(), connection.fileno()])
        except OSError:
            _stop()


@atexit.register
def _stop() -> None:
    """End the helper, which does so at the end of its input."""
    global _helper
    if _helper is not None:
        _helper[1].close()
        _helper[0].wait()
        _helper = None


def send(stream: Stream, message: bytes) -> None:
    """Send a message with its length."""
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def receive(stream: Stream) -> bytes:
    """The next message; raises EOFError."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > _LARGEST_MESSAGE:
        raise EOFError
    return _exactly(stream, length)


def _exactly(stream: Stream, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


_EXTRA = "a gateway with the extra arrow reads it: pip install 'halfmoon[arrow]'"


def _format(media_type: str, kind: FileKind, what: str, aliases: tuple[str, ...], endings: tuple[str, ...]) -> Format:
    description = (
        f"{what}, read where the extra arrow is installed. By default the columns text, label or labels (lists), id, "
        "weight and vote:NAME are read, and others kept."
    )

    def decoder(reading: Reading) -> ChildDecoder:
        if find_spec("pyarrow") is None:
            raise UnsupportedMediaType(f"a body of type {media_type}", _EXTRA)
        return ChildDecoder(reading, kind)

    schema = {"schema": {"type": "string", "format": "binary", "description": description}}
    return Format(
        media_type,
        decoder,
        schema,
        compressed=True,
        aliases=aliases,
        has_columns=True,
        endings=endings,
    )


PARQUET = _format(
    "application/vnd.apache.parquet",
    "parquet",
    "A Parquet file",
    ("application/x-parquet", "application/parquet"),
    ("parquet", "pq"),
)
ARROW = _format(
    "application/vnd.apache.arrow.stream",
    "stream",
    "An Arrow stream or file",
    ("application/vnd.apache.arrow.file",),
    ("arrow", "feather"),
)
