"""Thousands of made-up requests from the committed contract against the whole service: ``python -m benchmarks.fuzz [examples]``, ``docs/fuzzing.md``.

One check is left out, that every body which fits its schema is taken: no schema can say that a document has as many values as indices.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.base import machine, table, write
from benchmarks.documents import as_npz, documents, labels_of
from benchmarks.running import Service, service
from workers.api_keys import ApiKeys, Scope
from workers.storage import open_store

_CONTRACT = Path(__file__).parent.parent / "openapi" / "openapi.yaml"
_PHASES = "examples,coverage,fuzzing,stateful"


def fuzz(running: Service, key: str, examples: int) -> str:
    """What schemathesis says; every answer of the service is held to the contract."""
    _train(running.url, key)
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(_CONTRACT), "--url", running.url, "--header", f"Authorization: Bearer {key}"]
    command += ["--phases", _PHASES, "--max-examples", str(examples), "--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]
    command += ["--no-color", "--no-shrink", "--suppress-health-check", "all"]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "benchmarks.fuzz_hooks"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def _train(url: str, key: str) -> None:
    """A model to be asked."""
    given = documents(300)
    with httpx.Client(base_url=url, headers={"X-API-Key": key}, timeout=60.0, trust_env=False) as client:
        dataset = client.post("/v1/datasets", content=as_npz(given, labels_of(given)), headers={"Content-Type": "application/x-npz"}).json()["id"]
        job = client.post("/v1/jobs", json={"dataset": dataset, "model": "news", "algorithm": "svm"}).json()["id"]
        while client.get(f"/v1/jobs/{job}").json()["state"] != "succeeded":
            time.sleep(0.1)


def _told(said: str, failures: int, seconds: float, examples: int) -> str:
    cases = re.search(r"^\s+([\d,]+) generated.*$", said, re.MULTILINE)
    scenarios = re.search(r"Scenarios:\s+(\d+)", said)
    found = re.findall(r"^\s+❌ (ST\d+ .+)$", said, re.MULTILINE)
    rows = [
        ("requests made up", cases[0].strip() if cases else "unknown"),
        ("scenarios of several calls", scenarios[1] if scenarios else "unknown"),
        ("kinds of failure found", "; ".join(found) or "none"),
        ("answers with 5xx, by the service's own count", failures),
        ("seconds", f"{seconds:.0f}"),
    ]
    head = f"# Fuzzing the contract\n\nMade by `python -m benchmarks.fuzz {examples}` on: {machine()}.\n\n{table(['what', 'figure'], rows)}\n"
    return head + f"\nLeft out is one check: {__doc__.split('One check is left out, ')[1].strip() if __doc__ else ''}\n"


def _failures(url: str, key: str) -> int:
    """Answers of 500 and above."""
    lines = httpx.get(f"{url}/metrics", headers={"X-API-Key": key}, trust_env=False).text.splitlines()
    counted = (re.fullmatch(r'halfmoon_requests_total\{.*status="5\d\d"\} (.+)', line) for line in lines)
    return int(sum(float(found[1]) for found in counted if found))


def main(arguments: list[str]) -> None:
    """Run and write."""
    examples = int(arguments[0]) if arguments else 50
    settings = {"HALFMOON_ACCESS": "keys", "HALFMOON_LOG_LEVEL": "warning"}
    with tempfile.TemporaryDirectory(prefix="halfmoon-fuzz-") as folder, service(Path(folder), settings) as running:
        _, key = ApiKeys(open_store((running.data / "store").as_uri())).create("fuzzer", set(Scope))
        time.sleep(3)  # until the gateway has seen it
        begun = time.monotonic()
        said = fuzz(running, key, examples)
        print(said)
        write("fuzzing.md", _told(said, _failures(running.url, key), time.monotonic() - begun, examples))


if __name__ == "__main__":
    main(sys.argv[1:])
