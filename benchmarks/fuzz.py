"""Thousands of made-up requests, bodies and problems: ``python -m benchmarks.fuzz [minutes]`` writes a part of
``docs/fuzzing.md``; with a number of requests in place of minutes, as in ``python -m benchmarks.fuzz 13500 requests``,
it prints the figures of so many, on a folder alone.

Requests are made from the committed contract, by schemathesis, and sent to the whole service for so many minutes on
each store. Bodies for the parsers and problems for the solvers are those of the tests, by hypothesis, which makes the
same in every test run and others here.
"""

import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from benchmarks.base import machine, put_section, table
from benchmarks.damaged import troubles
from benchmarks.documents import as_npz, documents, labels_of
from benchmarks.hostile import WAITS, Bystander
from benchmarks.running import Service, peak_memory, service
from benchmarks.store_storm.parties import bucket_in
from storage.repositories.api_keys import ApiKeys, Scope
from storage.store import open_store
from tests.stores import s3_options
from tests.storm.crowd import lines

_ROOT = Path(__file__).parent.parent
_CONTRACT = _ROOT / "openapi" / "openapi.yaml"
_LONGEST = 7200.0
"""seconds after which a run ends that has not made all requests"""
_ANSWERS = re.compile(r"^halfmoon_requests_total{(\S+)} (\S+)$", re.MULTILINE)
_PHASES = "examples,coverage,fuzzing,stateful"
PROPERTIES = {
    "bodies and archives for the parsers": (
        "tests/app/codecs/test_parser_fuzz.py",
        "tests/app/codecs/transport/test_content_encoding.py",
    ),
    "problems and options for the solvers": (
        "tests/core/test_fuzz.py",
        "tests/core/algorithms/test_kernel_training.py",
        "tests/core/algorithms/test_ctsvm.py",
    ),
}
"""Test files whose hypothesis tests are counted, by what they generate."""


def fuzz(running: Service, key: str, seconds: float, requests: float = math.inf) -> str:
    """The output of schemathesis, which ends after so many seconds or answers; every answer of the service is held to
    the contract.
    """
    _train(running.url, key)
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        str(_CONTRACT),
        "--url",
        running.url,
        "--header",
        f"Authorization: Bearer {key}",
        "--phases",
        _PHASES,
        "--max-time",
        f"{seconds:.0f}",
        "--exclude-checks",
        "positive_data_acceptance",
        "--continue-on-failure",
        "--no-color",
        "--no-shrink",
        "--suppress-health-check",
        "all",
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "benchmarks.fuzz_hooks"}
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, env=environment, stdout=said, stderr=subprocess.DEVNULL) as run,
    ):
        before = _answered(running.url, key)
        while run.poll() is None:
            time.sleep(1)
            if _answered(running.url, key) - before >= requests:
                run.send_signal(signal.SIGINT)  # it tells what it has found so far
                run.wait()
        said.seek(0)
        return said.read()


def _answered(url: str, key: str) -> float:
    """How many requests were answered, but for those about its health."""
    text = httpx.get(f"{url}/metrics", headers={"X-API-Key": key}, timeout=60.0, trust_env=False).text
    return sum(float(count) for name, count in _ANSWERS.findall(text) if "health" not in name and "metrics" not in name)


def _train(url: str, key: str) -> None:
    """A model to be asked, by versions of a tree of labels, of one class, of clusters, of one label a document, and of
    several.
    """
    given = documents(300)
    with httpx.Client(base_url=url, headers={"X-API-Key": key}, timeout=60.0, trust_env=False) as client:
        for content, media_type, more in (
            (lines("tree", 400), "application/x-ndjson", {"algorithm": "auto", "nested": True}),
            (lines("one", 400), "application/x-ndjson", {"algorithm": "auto"}),
            (lines("one", 400), "application/x-ndjson", {"algorithm": "clusters", "options": {"n_clusters": 2}}),
            (as_npz(given, labels_of(given)), "application/x-npz", {}),
            (lines("several", 500), "application/x-ndjson", {}),
        ):
            dataset = client.post("/v1/datasets", content=content, headers={"Content-Type": media_type}).json()["id"]
            job = client.post(
                "/v1/jobs", json={"dataset": dataset, "model": "news", "algorithm": "svm", **more}
            ).json()["id"]
            while client.get(f"/v1/jobs/{job}").json()["state"] != "succeeded":
                time.sleep(0.1)


def made_up() -> list[tuple[str, object]]:
    """How many cases of each kind hypothesis has made up, and how many of them failed."""
    rows: list[tuple[str, object]] = []
    for what, files in PROPERTIES.items():
        options = ["-q", "-p", "no:cacheprovider", "-m", "hypothesis", "--hypothesis-show-statistics"]
        command = [sys.executable, "-m", "pytest", *options, "--hypothesis-profile=other-every-run", *files]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        if done.returncode > 1:  # 1: a case has failed, which is counted
            raise RuntimeError(done.stdout + done.stderr)
        counts = re.findall(r"^    - (\d+) passing, (\d+) failing", done.stdout, re.MULTILINE)
        passed, failed = (sum(int(count[place]) for count in counts) for place in (0, 1))
        rows.append((what, f"{passed + failed:,}, of which {failed} failed"))
    return rows


def _told(said: str, running: Service, seconds: float) -> dict[str, str]:
    """The figures in the output of schemathesis."""
    cases = re.search(r"^\s+([\d,]+) generated.*$", said, re.MULTILINE)
    scenarios = re.search(r"Scenarios:\s+([\d,]+)", said)
    wrong = troubles(running)
    found = re.findall(r"^\s+❌ (ST\d+ .+)$", said, re.MULTILINE)
    return {
        "requests": cases[0].strip() if cases else "unknown",
        "scenarios of several calls": scenarios[1] if scenarios else "unknown",
        "kinds of failure found": "; ".join(found) or "none",
        "lines of the log that tell of an answer with 5xx, an error or a death": "; ".join([str(len(wrong)), *wrong]),
        "seconds": f"{seconds:.0f}",
    }


def _section(minutes: float, told: dict[str, dict[str, str]], rows: list[tuple[str, object]]) -> str:
    figures = [(what, *(each[what] for each in told.values())) for what in next(iter(told.values()))]
    return (
        f"## Requests, bodies and problems that are made up\n\n"
        f"Made by `python -m benchmarks.fuzz {minutes:g}`, with so many minutes of requests on each store, "
        f"on:\n{machine()}.\n\n"
        "Schemathesis generates requests from the contract and checks every answer against it.\n"
        "One check is left out: that every body which fits its schema is accepted.\n"
        "No schema can say that a document has as many values as indices.\n\n"
        f"{table(['what', *told], figures)}\n"
        "Hypothesis generates bodies and problems: random bytes, mutated files, wrong types, tiny and odd problems.\n"
        "Each must end in finite results or in a named error.\n\n"
        f"{table(['what', 'figure'], rows)}"
    )


def _fuzzed(settings: Mapping[str, str], seconds: float, requests: float = math.inf) -> dict[str, str]:
    """The figures of a service on the store that its settings name, else on a folder."""
    settings = {"HALFMOON_ACCESS": "keys", "HALFMOON_LOG_REQUESTS": "true", **settings}
    options = s3_options(settings["AWS_ENDPOINT_URL"]) if "AWS_ENDPOINT_URL" in settings else None
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,
        service(Path(folder), settings) as running,
        ThreadPoolExecutor() as threads,
    ):
        store = open_store(settings.get("HALFMOON_STORE_URL", (running.data / "store").as_uri()), options=options)
        _, key = ApiKeys(store).create("fuzzer", set(Scope))
        time.sleep(3)  # until the gateway has seen it
        live = Bystander(running.url, running.gateway, "GET", "/v1/health/live")
        asking = threads.submit(live.ask)
        begun = time.monotonic()
        said = fuzz(running, key, seconds, requests)
        live.stop()
        print(said, flush=True)
        told = _told(said, running, time.monotonic() - begun)
        asking.result()
        told["requests answered, by the gateway's own count"] = f"{_answered(running.url, key):,.0f}"
        told["peak memory of the gateway, MB"] = f"{peak_memory(running.gateway) / 1e6:.0f}"
        return {**told, **dict(zip(WAITS, map(str, live.told()), strict=True))}


def main(arguments: list[str]) -> None:
    """Run and write."""
    if arguments[1:] == ["requests"]:
        figures = _fuzzed({}, _LONGEST, float(arguments[0]))
        print(table(["what", "on a folder"], list(figures.items())))
        return
    minutes = float(arguments[0]) if arguments else 12.0
    told = {"on a folder": _fuzzed({}, 60 * minutes)}
    with (
        tempfile.TemporaryDirectory() as name,
        open(os.devnull, "wb") as log,
        bucket_in(Path(name), log) as (_, bucket),
    ):
        settings = {"HALFMOON_STORE_URL": bucket.url, **bucket.environment}
        told["on S3"] = _fuzzed(settings, 60 * minutes)
    put_section("fuzzing.md", _section(minutes, told, made_up()))


if __name__ == "__main__":
    main(sys.argv[1:])
