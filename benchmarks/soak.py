"""Mixed load for minutes on the whole service, and its remains: ``python -m benchmarks.soak [minutes]`` writes
``docs/soak.md``.

Eight clients upload, train, watch, predict, list, relabel, cancel and delete, as fast as they are answered; one leaves
in the middle of uploads. Then the costs of clients that listen to the events of a running job.
"""

import random
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import numpy as np

from benchmarks.base import DOCS, machine, number, table, write
from benchmarks.documents import as_json, as_npz, documents, labels_of
from benchmarks.load import connected, request
from benchmarks.plots import Panel, draw
from benchmarks.running import Service, anonymous, service

_LISTENERS = (0, 200)
_SECONDS = 8.0
_DOCUMENTS = 60_000
_PACE = 0.02


class Cost(NamedTuple):
    """Of so many listeners for some seconds."""

    listeners: int
    processor: float
    """percent of one, the predictions among it"""
    memory: float
    """bytes"""
    latency: float
    """median seconds of a small prediction meanwhile"""
    events: int
    """that they got"""


def listened(running: Service) -> str:
    """Nobody and two hundred, at a job that trains all the while."""
    with _training(running) as job:
        costs = [_cost(running, job, count) for count in _LISTENERS]
    none, many = costs
    each = (many.memory - none.memory) / many.listeners
    rows = [
        [c.listeners, f"{c.processor:.1f} %", number(1000 * c.latency), number(c.memory / 1e6), c.events] for c in costs
    ]
    heads = [
        "listeners",
        "of a processor",
        "median ms of a prediction meanwhile",
        "MB of memory without files",
        "events received",
    ]
    return (
        f"## Listeners\n\nClients that listen to the events of one running job, for {_SECONDS:g} s each, "
        "beside fifty small predictions a second; "
        f"the job computes meanwhile on the same machine.\n\n{table(heads, rows)}\n"
        f"A listener takes {number(each / 1024)} KiB of memory and "
        f"{number((many.processor - none.processor) / many.listeners)} % of a processor.\n"
    )


@contextmanager
def _training(running: Service) -> Iterator[str]:
    given = documents(_DOCUMENTS)
    dataset = running.dataset(
        as_npz(given, [label if place < 2_000 else "" for place, label in enumerate(labels_of(given))])
    )
    options = {"tolerance": 1e-12, "max_iterations": 1_000_000}
    job = str(
        running.post("/v1/jobs", {"dataset": dataset, "model": "listened", "algorithm": "da", "options": options})["id"]
    )
    running.until(job, "running")
    try:
        yield job
    finally:
        running.post(f"/v1/jobs/{job}/cancel", {})


def _cost(running: Service, job: str, count: int) -> Cost:
    parts = urlsplit(running.url)
    question = request("/v1/models/m0/predict", as_json(documents(5, seed=1)))
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_connection((parts.hostname, parts.port))) for _ in range(count)]
        for listener in listeners:
            listener.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(1.0)
        before, begun = sum(running.gateway.cpu_times()[:2]), time.monotonic()
        latencies = _asked(running.url, question, begun + _SECONDS)
        share = (sum(running.gateway.cpu_times()[:2]) - before) / (time.monotonic() - begun)
        memory = anonymous(running.gateway)
        events = sum(_received(listener).count(b"event: ") for listener in listeners)
    still = httpx.get(f"{running.url}/v1/jobs/{job}", trust_env=False).json()["state"]
    if still != "running":
        raise RuntimeError(f"the job that was listened to is {still}")
    return Cost(count, 100 * share, memory, statistics.median(latencies), events)


def _asked(url: str, question: bytes, deadline: float) -> list[float]:
    taken = []
    with connected(url) as connection:
        while (begun := time.monotonic()) < deadline:
            connection.send(question)
            taken.append(time.monotonic() - begun)
            time.sleep(max(0.0, _PACE - taken[-1]))
    return taken


def _received(listener: socket.socket) -> bytes:
    listener.setblocking(False)
    parts = []
    try:
        while part := listener.recv(1 << 20):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


_CLIENTS = 8
_SAMPLE_SECONDS = 2.0
_CACHE_BYTES = 8 << 20
"""for loaded models: a larger cache would fill all the while, as it may, and hide what else grows"""
_SETTINGS = {"HALFMOON_MODEL_CACHE_BYTES": str(_CACHE_BYTES), "HALFMOON_LOG_LEVEL": "warning"}
GRAPH = DOCS / "soak.png"


class Load:
    """Clients until a deadline, and the answers to them."""

    def __init__(self, url: str, deadline: float) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.broken: Counter[str] = Counter()
        self._url = url
        self._deadline = deadline
        given = documents(300)
        self._upload = as_npz(given, [label if place < 60 else "" for place, label in enumerate(labels_of(given))])
        self._predict = as_json(documents(5, seed=1))

    def run(self, number: int) -> None:
        """One client."""
        chance = random.Random(number)
        acts = [self._train, self._predict_all, self._look, self._leave, self._predict_all]
        with httpx.Client(base_url=self._url, timeout=60.0, trust_env=False) as client:
            while time.monotonic() < self._deadline:
                try:
                    chance.choice(acts)(client, chance)
                except httpx.HTTPError as error:
                    self.broken[type(error).__name__] += 1

    def _call(self, client: httpx.Client, method: str, path: str, name: str, **options: Any) -> Any:
        answer = client.request(method, path, **options)
        self.answers[f"{method} {name}", answer.status_code] += 1
        return answer.json() if answer.is_success and answer.headers.get("content-type") == "application/json" else {}

    def _train(self, client: httpx.Client, chance: random.Random) -> None:
        npz = {"Content-Type": "application/x-npz"}
        dataset = self._call(client, "POST", "/v1/datasets", "/v1/datasets", content=self._upload, headers=npz).get(
            "id"
        )
        other = self._call(
            client, "PUT", f"/v1/datasets/{dataset}/labels", "/v1/datasets/{id}/labels", json={"labels": {"70": "a"}}
        ).get("id")
        body = {"dataset": dataset, "model": f"m{chance.randrange(4)}", "algorithm": chance.choice(["svm", "tsvm"])}
        job = self._call(client, "POST", "/v1/jobs", "/v1/jobs", json=body).get("id")
        if chance.random() < 0.3:
            self._call(client, "POST", f"/v1/jobs/{job}/cancel", "/v1/jobs/{id}/cancel")
        with client.stream("GET", f"/v1/jobs/{job}/events") as events:
            self.answers["GET /v1/jobs/{id}/events", events.status_code] += 1
            for _ in events.iter_bytes():
                pass
        self._call(client, "GET", f"/v1/jobs/{job}/trace", "/v1/jobs/{id}/trace")
        for kind, id in (("jobs", job), ("datasets", other), ("datasets", dataset)):
            self._call(client, "DELETE", f"/v1/{kind}/{id}", f"/v1/{kind}/{{id}}")

    def _predict_all(self, client: httpx.Client, chance: random.Random) -> None:
        for _ in range(20):
            path = f"/v1/models/m{chance.randrange(4)}/predict"
            self._call(
                client,
                "POST",
                path,
                "/v1/models/{name}/predict",
                content=self._predict,
                headers={"Content-Type": "application/json"},
            )

    def _look(self, client: httpx.Client, chance: random.Random) -> None:
        for path in ("/v1/datasets", "/v1/jobs", "/v1/models", "/metrics", "/v1/health/ready"):
            self._call(client, "GET", path, path)
        versions = self._call(client, "GET", f"/v1/models/m{chance.randrange(4)}", "/v1/models/{name}").get(
            "versions", []
        )
        for version in versions[:-2]:
            path = f"/v1/models/{version['name']}/versions/{version['version']}"
            self._call(client, "DELETE", path, "/v1/models/{name}/versions/{number}")

    def _leave(self, client: httpx.Client, chance: random.Random) -> None:
        parts = urlsplit(self._url)
        with socket.create_connection((parts.hostname, parts.port)) as leaving:
            head = (
                "POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                f"application/x-npz\r\nContent-Length: {len(self._upload)}\r\n\r\n"
            )
            leaving.sendall(head.encode() + self._upload[: chance.randrange(len(self._upload))])
        self.broken["left by intent"] += 1


class Sample(NamedTuple):
    """How the gateway was at one moment."""

    minutes: float
    resident: float
    """MB, the pages of mapped files among them"""
    own: float
    """MB that nobody shares and no file stands for"""
    cached: float
    """MB of loaded models, as the gateway tells itself"""
    files: int


def sampled(running: Service, deadline: float) -> list[Sample]:
    """The gateway, again and again."""
    begun, found, gateway = time.monotonic(), [], running.gateway
    with httpx.Client(base_url=running.url, timeout=60.0, trust_env=False) as client:
        while time.monotonic() < deadline:
            told = next(
                line
                for line in client.get("/metrics").text.splitlines()
                if line.startswith("halfmoon_model_cache_bytes ")
            )
            resident, own = gateway.memory_info().rss / 1e6, anonymous(gateway) / 1e6
            found.append(
                Sample((time.monotonic() - begun) / 60, resident, own, float(told.split()[1]) / 1e6, gateway.num_fds())
            )
            time.sleep(_SAMPLE_SECONDS)
    return found


def soak(running: Service, minutes: float) -> str:
    """Load the service and tell."""
    deadline = time.monotonic() + 60 * minutes
    load = Load(running.url, deadline)
    threads = [threading.Thread(target=load.run, args=(number,)) for number in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    samples = sampled(running, deadline)
    for thread in threads:
        thread.join()
    time.sleep(10)
    after = running.gateway.num_fds()
    staged = len(list((running.data / "store" / ".staging").glob("*/*")))
    graph(samples)
    return _told(load, samples, minutes, after, staged)


def graph(samples: Sequence[Sample]) -> None:
    """The samples over time, drawn."""
    minutes = [sample.minutes for sample in samples]
    memory = {"resident": "resident", "own": "without mapped files", "cached": "loaded models"}
    curves = {told: (minutes, [float(getattr(sample, name)) for sample in samples]) for name, told in memory.items()}
    files = {"open files": (minutes, [float(sample.files) for sample in samples])}
    draw(
        [Panel("memory of the gateway", curves, "minutes", "MB"), Panel("its open files", files, "minutes", "files")],
        GRAPH,
    )


def _told(load: Load, samples: Sequence[Sample], minutes: float, files: int, staged: int) -> str:
    half = samples[len(samples) // 2 :]
    first, last = half[0], half[-1]
    statuses: Counter[int] = Counter()
    for (_, status), count in load.answers.items():
        statuses[status] += count
    figures = [
        ("requests", f"{sum(load.answers.values()):,}"),
        ("answers by status", ", ".join(f"{count:,} × {status}" for status, count in sorted(statuses.items()))),
        (
            "connections that broke",
            ", ".join(f"{count} × {name}" for name, count in load.broken.items() if name != "left by intent") or "none",
        ),
        ("clients that left in the middle of an upload", load.broken["left by intent"]),
        ("memory without mapped files at half time, at the end", f"{first.own:.0f} MB, {last.own:.0f} MB"),
        ("**its slope in the second half**", f"**{slope(half, 'own'):+.2f} MB a minute**"),
        ("resident memory at half time, at the end", f"{first.resident:.0f} MB, {last.resident:.0f} MB"),
        ("its slope in the second half", f"{slope(half, 'resident'):+.2f} MB a minute"),
        ("loaded models at half time, at the end", f"{first.cached:.1f} MB, {last.cached:.1f} MB"),
        (
            "open files at half time, at most, ten seconds after the end",
            f"{first.files}, {max(sample.files for sample in samples)}, {files}",
        ),
        ("files left in the staging area", staged),
    ]
    return (
        f"# Mixed load\n\nMade by `python -m benchmarks.soak {minutes:g}` on:\n{machine()}.\n"
        f"One gateway, one worker, {_CLIENTS} clients for {minutes:g} minutes, on a machine that others may use.\n"
        "The clients upload, relabel, train, watch, cancel, predict, list and delete as fast as they are answered.\n"
        f"The cache of loaded models may take {_CACHE_BYTES >> 20} MiB, so that it is soon full.\n"
        "What may still grow in such a run is bounded, some 10 MB in all:\n"
        "records of versions (2,000 at most) and checksums of files (10,000 at most).\n\n"
        f"{table(['what', 'figure'], figures)}\n![memory and open files over time]({GRAPH.name})\n"
    )


def slope(samples: Sequence[Sample], name: str) -> float:
    """By how much something grows in a minute: the line through the samples with the least squares."""
    values = [float(getattr(sample, name)) for sample in samples]
    return float(np.polyfit([sample.minutes for sample in samples], values, 1)[0])


def main(arguments: list[str]) -> None:
    """Run and write."""
    minutes = float(arguments[0]) if arguments else 10.0
    with tempfile.TemporaryDirectory(prefix="halfmoon-soak-") as folder, service(Path(folder), _SETTINGS) as running:
        write("soak.md", soak(running, minutes) + "\n" + listened(running))


if __name__ == "__main__":
    main(sys.argv[1:])
