"""Uploads that are made while they are sent, by a process of their own, and their cost for the gateway.

``python -m benchmarks.uploads URL FORMAT MEGABYTES`` sends one after the other and tells of each in a line of JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from benchmarks.documents import NONZEROS, as_csv, as_ndjson, as_svmlight, documents, write_npz
from benchmarks.load import connected
from benchmarks.running import Service, forget_peak, peak_memory

_BLOCK = 10_000
_TEXTS = {"ndjson": as_ndjson, "svmlight": as_svmlight, "csv": as_csv}
_HEADS = {"csv": b"text\r\n"}
_TYPES = {
    "csv": "text/csv",
    "npz": "application/x-npz",
    "ndjson": "application/x-ndjson",
    "svmlight": "text/x-svmlight",
}


class Upload(NamedTuple):
    """One upload from its first byte to the answer, which says that it is durable."""

    documents: int
    megabytes: float
    seconds: float
    peak: int
    """the most bytes of memory that the gateway held meanwhile"""


def uploads(service: Service, form: str, megabytes: int, count: int) -> list[Upload]:
    """So many uploads, each with a warm sender."""
    made = []
    with _sending(service, form, megabytes) as lines:
        for _ in range(count):
            forget_peak(service.gateway)
            made.append(Upload(**json.loads(next(lines)), peak=peak_memory(service.gateway)))
    return made


@contextmanager
def uploading(service: Service, form: str, megabytes: int) -> Iterator[None]:
    """Uploads follow each other for as long as the block is entered; the last one is broken off."""
    with _sending(service, form, megabytes):
        yield


@contextmanager
def _sending(service: Service, form: str, megabytes: int) -> Iterator[IO[str]]:
    """The lines of a sender that has just begun its first upload."""
    command = [sys.executable, "-m", "benchmarks.uploads", service.url, form, str(megabytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "begun\n":
            raise RuntimeError("the sender did not begin")
        yield process.stdout
        if process.poll() is not None:
            raise RuntimeError("the sender has ended too early")
        process.kill()


def main(url: str, form: str, megabytes: int) -> None:
    """Send until killed."""
    block = documents(_BLOCK)
    text = _TEXTS[form](block) if form in _TEXTS else b""
    repeats = max(1, round(megabytes * 1e6 / (len(text) or _BLOCK * (8 * NONZEROS + 8))))
    print("begun", flush=True)
    while True:
        begun = time.perf_counter()
        with connected(url) as connection:
            with connection.begin("/v1/datasets", _TYPES[form]) as body:
                if form == "npz":
                    write_npz(body, block, repeats)
                body.write(_HEADS.get(form, b""))
                for _ in range(repeats if text else 0):
                    body.write(text)
            made = json.loads(connection.answer())
        size = len(text) * repeats or made["n_nonzeros"] * 8 + made["n_documents"] * 8
        print(
            json.dumps(
                {"documents": made["n_documents"], "megabytes": size / 1e6, "seconds": time.perf_counter() - begun}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
