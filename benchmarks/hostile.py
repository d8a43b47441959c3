"""Waits of other clients while a gateway is sent bodies that are made to hurt: ``python -m benchmarks.hostile [MiB]``
writes a part of ``docs/fuzzing.md``.

Each body is sent by two callers at once, compressed where that makes it short. Meanwhile two other clients ask a
hundred times a second whether the gateway lives, and for a small prediction. The longest wait of each is compared with
that of a quiet gateway, and the memory with what the gateway has counted.
"""

import gzip
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import psutil

from benchmarks.base import Log, machine, number, put_section, table
from benchmarks.documents import as_npz, documents, labels_of
from benchmarks.hostile_bodies import Hostile, hostile_bodies
from benchmarks.running import Service, anonymous, service

_CALLERS = 2
_PAUSE = 0.01
_QUIET_SECONDS = 3.0
_SHOWN = 5
_MOST_WAIT = 0.25
_LIVE_WAIT = 0.1
WAITS = (
    "asked whether it lives",
    "median ms",
    "p99",
    "p99.9",
    "longest",
    "over 100 ms, the gateway at work in half of it",
)
_SPARE_BYTES = 64 << 20
"""Memory beside what is counted: blocks that are parsed, heaps that are kept for the next body."""
_SMALL = {"documents": [{"indices": [0]}]}


class Cost(NamedTuple):
    """Of one body."""

    hostile: Hostile
    status: int
    seconds: float
    live: float
    """longest wait for liveness, in seconds"""
    predicted: float
    """longest wait for a small prediction, in seconds"""
    counted: float
    """most bytes that the gateway has counted"""
    gained: float
    """most bytes of memory, without pages of mapped files, that it had more than before"""


class Bystander:
    """Another client, which asks again and again while its block is entered."""

    def __init__(self, url: str, gateway: psutil.Process, method: str, path: str, body: object = None) -> None:
        self.longest = 0.0
        self.waits = list[tuple[float, float]]()
        """of each request its seconds, and those that the gateway meanwhile had of a processor"""
        self._gateway = gateway
        self._call = (method, path, body)
        # without certificates, which take longer to load than most bodies
        self._client = httpx.Client(base_url=url, timeout=120, trust_env=False, verify=False)
        self._stop = threading.Event()

    def ask(self) -> None:
        method, path, body = self._call
        while not self._stop.wait(_PAUSE):
            before, begun = self._worked(), time.monotonic()
            answer = self._client.request(method, path, json=body)
            seconds = time.monotonic() - begun
            self.longest = max(self.longest, seconds)
            self.waits.append((seconds, self._worked() - before))
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.text}")

    def _worked(self) -> float:
        return float(sum(self._gateway.cpu_times()[:2]))

    def stop(self) -> None:
        self._stop.set()

    def told(self) -> list[object]:
        """Cells of a table, below ``WAITS``."""
        seconds = [each for each, _ in self.waits]
        slow = [worked > each / 2 for each, worked in self.waits if each > _LIVE_WAIT]
        shares = [number(1e3 * float(np.quantile(seconds, share))) for share in (0.5, 0.99, 0.999, 1.0)]
        return [f"{len(seconds):,}", *shares, f"{len(slow)}, {sum(slow)}"]


class Counter(Bystander):
    """Reads how many bytes the gateway counts, and how many it has."""

    most = held = 0.0

    def ask(self) -> None:
        while not self._stop.wait(_PAUSE):
            self.held = max(self.held, anonymous(self._gateway))
            found = re.search(r"^halfmoon_body_bytes (\S+)", self._client.get("/metrics").text, re.MULTILINE)
            assert found is not None
            self.most = max(self.most, float(found[1]))


Others = tuple[Bystander, Bystander, Counter]


@contextmanager
def bystanders(url: str, gateway: psutil.Process) -> Iterator[Others]:
    """Liveness, a small prediction, a counter."""
    found = (
        Bystander(url, gateway, "GET", "/v1/health/live"),
        Bystander(url, gateway, "POST", "/v1/models/news/predict", _SMALL),
        Counter(url, gateway, "GET", "/metrics"),
    )
    with ThreadPoolExecutor(len(found)) as threads:
        asking = [threads.submit(each.ask) for each in found]
        try:
            yield found
        finally:
            for each in found:
                each.stop()
    for asked in asking:
        asked.result()


def cost(client: httpx.Client, gateway: psutil.Process, others: Others, hostile: Hostile) -> Cost:
    headers = {"Content-Type": hostile.media_type, "Content-Encoding": hostile.encoding}
    before = anonymous(gateway)
    live, predicted, counter = others
    live.longest = predicted.longest = counter.most = counter.held = 0.0
    begun = time.monotonic()
    with ThreadPoolExecutor(_CALLERS) as callers:
        answers = callers.map(
            lambda path: client.request(hostile.method, path, content=hostile.body, headers=headers),
            [hostile.path] * _CALLERS,
        )
    seconds = time.monotonic() - begun
    # those who wait now have their answers
    time.sleep(3 * _PAUSE)
    return Cost(
        hostile,
        max(answer.status_code for answer in answers),
        seconds,
        live.longest,
        predicted.longest,
        counter.most,
        counter.held - before,
    )


def packed(hostile: Hostile) -> Hostile:
    """A hostile request, made short as sent."""
    if hostile.encoding == "gzip" or hostile.media_type in ("application/x-npz", "application/x-npy"):
        return hostile
    return hostile._replace(body=gzip.compress(hostile.body, 6, mtime=0), encoding="gzip")


def prepared(running: Service) -> str:
    """A model called news, and the id of its dataset."""
    given = documents(2000)
    dataset = running.dataset(as_npz(given, labels_of(given)))
    job = str(running.post("/v1/jobs", {"dataset": dataset, "model": "news", "algorithm": "svm"})["id"])
    running.until(job, "succeeded")
    return dataset


def section(size: int, costs: Sequence[Cost], quiet: Sequence[float], log: Log) -> str:
    """The part of the page."""
    worst = sorted(costs, key=lambda each: -max(each.live, each.predicted))[:_SHOWN]
    heads = [
        "body",
        "bytes sent",
        "status",
        "seconds",
        "longest wait for liveness, ms",
        "for a prediction, ms",
        "MB counted",
        "MB gained",
    ]
    rows = [
        [
            *(
                each.hostile.name,
                len(each.hostile.body),
                each.status,
                number(each.seconds),
                number(1e3 * each.live),
                number(1e3 * each.predicted),
            ),
            *(f"{each.counted / 1e6:,.1f}", f"{each.gained / 1e6:,.1f}"),
        ]
        for each in worst
    ]
    slow = [each for each in costs if max(each.live, each.predicted) > _MOST_WAIT]
    large = [each for each in costs if each.gained > 2 * each.counted + _SPARE_BYTES]
    unnamed = [each for each in costs if each.status >= 500 and each.status != 507]
    return (
        "## Bodies that are made to hurt\n\n"
        f"Each of {len(costs)} bodies (`benchmarks/hostile_bodies.py`) is sent by two callers at once, "
        "compressed where that makes it short. Meanwhile two other clients ask a hundred times a second whether "
        "the gateway lives, and for a small prediction.\n"
        f"Made by `python -m benchmarks.hostile {size >> 20}` in {log.seconds:.0f} s on: {machine()}. {log.load}\n\n"
        f"The {len(rows)} bodies at which others waited longest:\n\n{table(heads, rows)}\n"
        f"Longest waits of a quiet gateway: {', '.join(number(1e3 * each) for each in quiet)} ms.\n"
        f"Others waited more than {1e3 * _MOST_WAIT:.0f} ms at {len(slow)} bodies, the first of which are: "
        f"{', '.join(each.hostile.name for each in slow[:_SHOWN]) or 'none'}.\n"
        f"More memory than twice what is counted, and {_SPARE_BYTES >> 20} MiB: "
        f"{', '.join(each.hostile.name for each in large) or 'none'}.\n"
        f"Answers that name nothing: {', '.join(each.hostile.name for each in unnamed) or 'none'}.\n"
    )


def main(arguments: Sequence[str]) -> int:
    size = int(arguments[0]) << 20 if arguments else 16 << 20
    log = Log()
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as running:
        dataset = prepared(running)
        with (
            bystanders(running.url, running.gateway) as others,
            httpx.Client(base_url=running.url, timeout=120, trust_env=False, verify=False) as client,
        ):
            time.sleep(_QUIET_SECONDS)
            quiet = [each.longest for each in others[:2]]
            costs = []
            for each in hostile_bodies(size, dataset):
                costs.append(cost(client, running.gateway, others, packed(each)))
                log(each.name)
    put_section("fuzzing.md", section(size, costs, quiet, log))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
