"""The store that an earlier version leaves when it is stopped at work: ``python -m tests.e2e.earlier CHECKOUT ARCHIVE``
makes one.

The checkout's ``halfmoon up`` gets a model of two versions with an alias, a dataset of texts with annotations and an
audit, a model of texts by ``auto``, a webhook with a message that waits, a key, a job that is handed back and one that
waits. The checkout's own Python runs it. The archive holds the folder ``store``.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from tests.there import there
from tests.workers.worker.attempts import texts

LONG = {"cooling": 1.001}
"""Options with which annealing takes some seconds."""
SETTINGS = {"HALFMOON_WEBHOOK_NETWORKS": '["127.0.0.0/8"]'}
"""Settings that allow the address of the webhook, where nobody answers."""


def points(count: int = 60) -> bytes:
    """Documents of two classes, as npz; their values are few, so that many of them still make a small archive."""
    left = np.arange(count) % 2 == 1
    more = np.random.default_rng(0).random((count, 5)) < np.where(left[:, None], 0.7, 0.3)
    indptr, indices = np.arange(0, 5 * count + 1, 5), np.tile(np.arange(5), count)
    labels = np.where(np.arange(count) < 20, np.where(left, "left", "right"), "")
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, indptr=indptr, indices=indices, data=1.0 + more.ravel(), shape=np.array([count, 5]), labels=labels
    )
    return buffer.getvalue()


def main(checkout: str, archive: str) -> None:
    with tempfile.TemporaryDirectory(prefix="earlier-", dir="/tmp") as folder:
        _work(checkout, Path(folder))
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(
                Path(folder) / "store", "store", filter=lambda entry: None if ".staging" in entry.name else entry
            )


def _work(checkout: str, data: Path) -> None:
    environment = {**os.environ, **SETTINGS, "PYTHONPATH": checkout, "HALFMOON_DRAIN_SECONDS": "0"}
    command = [f"{checkout}/.venv/bin/python", "-m", "app.cli"]
    key = [*command, "keys", "create", "--data", str(data), "--name", "portal", "--scope", "predict"]
    subprocess.run(key, env=environment, cwd=checkout, check=True, stdout=subprocess.DEVNULL)
    up = [*command, "up", "--port", "0", "--data", str(data)]
    with subprocess.Popen(up, env=environment, cwd=checkout, stdout=subprocess.PIPE, text=True) as running:
        try:
            url = next(line for line in there(running.stdout) if "is ready: " in line).split()[-1]
            with httpx.Client(base_url=url, timeout=60.0, trust_env=False) as client:
                _fill(client)
        finally:
            running.terminate()


def _fill(client: httpx.Client) -> None:
    npz = {"Content-Type": "application/x-npz"}
    dataset = client.post("/v1/datasets", params={"name": "points"}, content=points(), headers=npz).json()["id"]
    relabeled = client.put(f"/v1/datasets/{dataset}/labels", json={"labels": {"30": "left"}}).json()["id"]
    for used, algorithm in ((dataset, "svm"), (relabeled, "tsvm")):
        _until(client, _post(client, used, "news", algorithm), "succeeded")
    client.put("/v1/models/news/aliases/live", json={"version": 1}).raise_for_status()
    _fill_texts(client)
    many = client.post("/v1/datasets", content=points(20_000), headers=npz).json()["id"]
    _until(client, _post(client, many, "slow", "da", **LONG), "running")
    _post(client, relabeled, "waiting", "svm")


def _fill_texts(client: httpx.Client) -> None:
    documents = [{"text": text} for text in texts(60)]
    for place, document in enumerate(documents[:12]):
        document["label"] = ("sport", "politics")[place % 2]
    created = client.post("/v1/datasets", params={"name": "texts"}, json={"documents": documents})
    dataset = f"/v1/datasets/{created.json()['id']}"
    drawn = client.post(f"{dataset}/audits", json={"n": 4}).json()["documents"]
    entries: list[dict[str, str]] = [
        {"id": f"entry-{place}", "document": each, "action": "label", "label": "sport", "by": "ann"}
        for place, each in enumerate(drawn)
    ]
    entries.append({"id": "undone", "document": drawn[0], "action": "undo", "by": "ann"})
    client.post(f"{dataset}/annotations", json={"annotations": entries}).raise_for_status()
    webhook = {"url": "http://127.0.0.1:9/told", "events": ["job.ended"]}
    client.post("/v1/webhooks", json=webhook).raise_for_status()
    job = {"dataset": created.json()["id"], "model": "topics", "algorithm": "auto", "annotations": "latest"}
    _until(client, client.post("/v1/jobs", json=job).json()["id"], "succeeded")


def _post(client: httpx.Client, dataset: str, model: str, algorithm: str, **options: float) -> str:
    answer = client.post(
        "/v1/jobs", json={"dataset": dataset, "model": model, "algorithm": algorithm, "options": options}
    )
    answer.raise_for_status()
    return str(answer.json()["id"])


def _until(client: httpx.Client, job: str, state: str) -> None:
    deadline = time.monotonic() + 60
    while (found := client.get(f"/v1/jobs/{job}").json()["state"]) != state:
        assert found not in ("failed", "cancelled", "succeeded"), f"job {job} is {found}, not {state}"
        assert time.monotonic() < deadline
        time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
