"""Damaged bodies of every format, sent to a whole service: ``python -m benchmarks.damaged [count]`` writes a part of
``docs/fuzzing.md``.

Good bodies of a format are changed at random, so many times, and uploaded by four clients. Meanwhile another asks a
hundred times a second whether the gateway lives. Afterwards the log of the service is read for errors and deaths.
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import httpx

from app.codecs.dispatch import FORMATS
from benchmarks.base import Log, machine, put_section, table
from benchmarks.hostile import WAITS, Bystander
from benchmarks.running import Service, forget_peak, peak_memory, service
from tests.app.codecs.good_bodies import CONTENT_TYPES, GOOD

_CLIENTS = 4
_ERRORS = re.compile(r"status=5\d\d|Traceback|\[error|\[critical|was killed|exited with code", re.IGNORECASE)


def damaged(good: Sequence[bytes], chance: Random) -> bytes:
    """A good body with a few bytes changed, cut off, repeated or removed."""
    body = bytearray(chance.choice(good))
    for _ in range(chance.choice([1, 1, 2, 4])):
        start = chance.randrange(len(body) + 1)
        stop = min(len(body), start + chance.choice([1, 1, 2, 30]))
        new = chance.choice([chance.randbytes(stop - start), b"", bytes(body[start:stop]) * chance.choice([2, 100])])
        body[start:stop] = new
    return bytes(body)


def troubles(running: Service) -> list[str]:
    """Lines of its log that tell of an answer with 5xx, an error or a death."""
    return [line[:200] for line in running.said().splitlines() if _ERRORS.search(line)]


def _upload(url: str, media_type: str, bodies: Iterator[bytes]) -> Counter[int]:
    """Statuses of the answers, 0 for none; what is accepted is deleted."""
    found = Counter[int]()
    headers = {"Content-Type": CONTENT_TYPES.get(media_type, media_type)}
    with httpx.Client(base_url=url, timeout=60.0, trust_env=False, verify=False) as client:
        for body in bodies:
            try:
                answer = client.post("/v1/datasets", content=body, headers=headers)
                found[answer.status_code] += 1
                if answer.status_code == 201:
                    client.delete(f"/v1/datasets/{answer.json()['id']}")
            except httpx.HTTPError:
                found[0] += 1
    return found


def _of_format(running: Service, media_type: str, count: int) -> list[object]:
    """A row of the table: statuses, longest wait for liveness, memory gained."""
    gateway, live = running.gateway, Bystander(running.url, running.gateway, "GET", "/v1/health/live")
    before = gateway.memory_info().rss
    forget_peak(gateway)
    parts = [
        (damaged(GOOD[media_type], chance) for _ in range(count // _CLIENTS))
        for chance in (Random(f"{media_type} {client}") for client in range(_CLIENTS))
    ]
    with ThreadPoolExecutor(_CLIENTS + 1) as threads:
        asking = threads.submit(live.ask)
        found = sum(threads.map(lambda bodies: _upload(running.url, media_type, bodies), parts), Counter[int]())
        live.stop()
        asking.result()
    told = ", ".join(f"{times:,} × {status or 'none'}" for status, times in sorted(found.items()))
    return [media_type, told, *live.told(), f"{(peak_memory(gateway) - before) / 1e6:.0f}"]


def main(arguments: Sequence[str]) -> int:
    """The exit code is the number of lines in the log that tell of an error or a death."""
    count, log = int(arguments[0]) if arguments else 5000, Log()
    with (
        tempfile.TemporaryDirectory(prefix="damaged-", dir="/tmp") as folder,
        service(Path(folder), {"HALFMOON_LOG_REQUESTS": "true"}) as running,
    ):
        rows = []
        for media_type in FORMATS:
            rows.append(_of_format(running, media_type, count))
            log(f"{rows[-1]}")
        lines = troubles(running)
    text = (
        "## Damaged bodies of every format\n\n"
        "Good bodies are changed at random, and uploaded by four clients. Meanwhile another asks a hundred times a "
        "second whether the gateway lives.\n"
        f"Made by `python -m benchmarks.damaged {count}` in {log.seconds:.0f} s on: {machine()}. {log.load}\n\n"
        + table(["format", "answers", *WAITS, "MB gained"], rows)
        + f"\nLines of the service's log that tell of an error or a death: {len(lines)}.\n"
        + "".join(f"\n- {line}" for line in lines[:10])
    )
    put_section("fuzzing.md", text)
    return len(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
