"""Holds the service to its figures.

One gateway process, one worker and the client share the machine; a plain FastAPI app is measured by the same client in
the same run.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np
import psutil

from benchmarks.base import Figure, table
from benchmarks.documents import FEATURES, as_json, as_npz, documents, labels_of, weights
from benchmarks.load import closed_loop, open_loop, request
from benchmarks.running import Service, gateway, memory, plain_app, service, until_ready
from benchmarks.uploads import uploading, uploads

T = TypeVar("T")
_RATE = 300.0
_SECONDS = 5.0
_REPEATS = 3
_PREDICT = "/v1/models/bench/predict"
_JSON, _NPZ = "application/json", "application/x-npz"
_READY = "/v1/health/ready"


class Rivals(NamedTuple):
    """Both servers, up at the same time and measured in turn."""

    ours: Service
    plain: str
    """address of the plain app"""
    model: Path
    """the plain app's"""

    def in_turn(
        self, measure: Callable[[str, bytes], T], body: bytes, media_type: str = _JSON
    ) -> tuple[list[T], list[T], list[T]]:
        """The results of ``measure(url, request)`` for ours, the plain app and a bare answer, several times."""
        paths = _PREDICT, "/predict-npz" if media_type == _NPZ else "/predict", "/bare"
        asked = list(zip((self.ours.url, self.plain, self.plain), paths, strict=True))
        found = [[measure(url, request(path, body, media_type)) for url, path in asked] for _ in range(_REPEATS)]
        ours, plain, bare = zip(*found, strict=True)
        return list(ours), list(plain), list(bare)


def uploaded(rivals: Rivals) -> Iterator[Figure]:
    """Figures of uploads, measured first, while the gateway's memory is small."""
    before = memory(rivals.ours.gateway)
    small = uploads(rivals.ours, "npz", 500, _REPEATS)
    yield Figure("upload npz", median(each.megabytes / each.seconds for each in small), 150, "MB/s", at_most=False)
    kinds = {"npz, 500 MB": small, "npz, 2,000 MB": uploads(rivals.ours, "npz", 2000, 1)}
    for form in ("ndjson", "svmlight"):
        kinds[f"{form}, 60 MB"] = uploads(rivals.ours, form, 60, _REPEATS)
        rate = median(each.documents / each.seconds for each in kinds[f"{form}, 60 MB"])
        yield Figure(f"upload {form}", rate, 30_000, "documents a second", at_most=False)
    kinds["csv, 200 MB"] = uploads(rivals.ours, "csv", 200, _REPEATS)
    yield Figure(
        "upload csv", median(each.megabytes / each.seconds for each in kinds["csv, 200 MB"]), 60, "MB/s", at_most=False
    )
    for name, made in kinds.items():
        yield Figure(
            f"memory gained by the gateway: {name}", (max(each.peak for each in made) - before) / 2**20, 64, "MiB"
        )


def single_documents(rivals: Rivals) -> Iterator[Figure]:
    body = as_json(documents(1))
    found = rivals.in_turn(lambda url, content: open_loop(url, content, _RATE, _SECONDS), body)
    for share, bound in ((0.5, 2), (0.99, 6)):
        ours, plain, bare = (1e3 * median(each.quantile(share) for each in runs) for runs in found)
        what = f"predict one document, {_RATE:.0f} a second: p{share * 100:.0f}"
        yield Figure(what, ours, bound, "ms", rival=plain, floor=bare)
    most = rivals.in_turn(lambda url, content: closed_loop(url, content, 8, _SECONDS), body)
    ours, plain, bare = map(median, most)
    what = "predict one document, 8 connections"
    yield Figure(what, ours, 1200, "a second", at_most=False, rival=plain, floor=bare)


def batches(rivals: Rivals) -> Iterator[Figure]:
    """Two connections, so that one request is sent while the other is computed."""
    for what, size, body, media_type, bound in (
        ("npz", 10_000, as_npz(documents(10_000)), _NPZ, 700_000),
        ("JSON", 1_000, as_json(documents(1_000)), _JSON, 60_000),
    ):
        found = rivals.in_turn(lambda url, content: closed_loop(url, content, 2, _SECONDS), body, media_type)
        ours, plain = (size * median(runs) for runs in found[:2])
        yield Figure(
            f"predict {what} batches of {size:,}", ours, bound, "documents a second", at_most=False, rival=plain
        )


def busy(rivals: Rivals) -> Iterator[Figure]:
    """Predictions while the worker trains and uploads of 500 MB follow each other."""
    ours, content = rivals.ours, request(_PREDICT, as_json(documents(1)))
    crowd = documents(100_000)
    labels = [label if place < 1000 else "" for place, label in enumerate(labels_of(crowd))]
    dataset = ours.dataset(as_npz(crowd, labels))
    jobs = [ours.post("/v1/jobs", {"dataset": dataset, "model": "crowd", "algorithm": "da"})["id"] for _ in range(30)]
    ours.until(jobs[0], "running")
    with uploading(ours, "npz", 500):
        found = [open_loop(ours.url, content, _RATE, _SECONDS).quantile(0.99) for _ in range(_REPEATS)]
    if ours.state(jobs[-1]) != "queued":
        raise RuntimeError("the jobs did not last as long as the measurement")
    for job in reversed(jobs):
        ours.post(f"/v1/jobs/{job}/cancel", {})
    yield Figure("the same while a job trains and 500 MB come in: p99", 1e3 * median(found), 50, "ms")
    for job in jobs:
        ours.until(job, "cancelled")


def tiny_jobs(rivals: Rivals) -> Iterator[Figure]:
    """From the request to the state that says the model is there, asked for every 5 ms."""
    few = documents(20)
    dataset = rivals.ours.dataset(as_npz(few, labels_of(few)))
    seconds = []
    for _ in range(21):
        begun = time.perf_counter()
        job = rivals.ours.post("/v1/jobs", {"dataset": dataset, "model": "tiny", "algorithm": "svm"})["id"]
        rivals.ours.until(job, "succeeded", pause=0.005)
        seconds.append(time.perf_counter() - begun)
    yield Figure("a tiny job from POST to succeeded: p50", 1e3 * median(seconds), 300, "ms")


def starts(rivals: Rivals) -> Iterator[Figure]:
    """From the start of the process to its readiness, and the memory that it has then; both have run before, so their
    modules are compiled.
    """
    ours, plain = [], []
    for _ in range(_REPEATS):
        ours.append(_start(lambda: gateway(rivals.ours), _READY))
        plain.append(_start(lambda: plain_app(rivals.model), "/health"))
    for place, (what, bound, unit) in enumerate(
        (("gateway from start to ready", 1.5, "s"), ("its memory when ready", 160, "MiB"))
    ):
        yield Figure(
            what, median(each[place] for each in ours), bound, unit, rival=median(each[place] for each in plain)
        )


def _start(
    starting: Callable[[], AbstractContextManager[tuple[str, psutil.Process]]], path: str
) -> tuple[float, float]:
    begun = time.perf_counter()
    with starting() as (url, process):
        until_ready(url, path)
        return time.perf_counter() - begun, memory(process) / 2**20


def _train(ours: Service) -> None:
    """The model that all predictions are made with."""
    known = documents(2000)
    dataset = ours.dataset(as_npz(known, labels_of(known)))
    ours.until(ours.post("/v1/jobs", {"dataset": dataset, "model": "bench", "algorithm": "svm"})["id"], "succeeded")


def section() -> str:
    """All figures in one table."""
    load = os.getloadavg()[1]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="halfmoon-benchmark-")))
        ours = stack.enter_context(service(folder / "data"))
        _train(ours)
        model = folder / "plain.npz"
        np.savez(model, coefficients=weights(), intercept=np.zeros(1))
        plain, _ = stack.enter_context(plain_app(model))
        until_ready(plain, "/health")
        rivals = Rivals(ours, plain, model)
        parts = (uploaded, single_documents, batches, busy, tiny_jobs, starts)
        rows = [figure.row() for part in parts for figure in part(rivals)]
    heads = ["figure", "Halfmoon", "to reach", "", "plain app", "times better", "bare answer"]
    return (
        f"Documents of 76 of {FEATURES:,} features. One gateway process, one worker and the client share the "
        "machine, whose load in the five minutes "
        f"before was {load:.1f}; medians of {_REPEATS} runs of {_SECONDS:g} s, latencies from the moment at "
        "which a request was due. The plain app "
        "(FastAPI, pydantic, SciPy, scikit-learn: `benchmarks/plain_app.py`) is measured in turn by the same "
        "client. Modules are compiled, as pip "
        "leaves them.\n\n"
        "The bounds are absolute. Only the columns after them compare like with like. The bare answer is one of the "
        "plain app's server, for which nothing is computed.\n\n"
        f"{table(heads, rows)}"
    )
