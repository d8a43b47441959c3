"""The commands of the runbook, as they are printed."""

import io
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml

from storage.repositories.api_keys import ApiKeys, Scope
from storage.repositories.job_attempts import Attempt
from storage.repositories.jobs import Jobs
from storage.store import open_store
from storage.store.json_records import read
from tests.app.conftest import serving
from tests.e2e.service import Service, started
from tests.processes import Program
from tests.stores import Valkey, s3_options
from tests.waiting import HANG, SLOW, until

BIN = Path(sys.executable).parent


@pytest.fixture
def runbook(repository: Path) -> dict[str, str]:
    """Commands by section."""
    sections = re.split(r"^## ", (repository / "docs/runbook.md").read_text(), flags=re.MULTILINE)[1:]
    commands = {
        section.splitlines()[0]: "\n".join(re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL))
        for section in sections
    }
    return {name: script for name, script in commands.items() if script}


def run(script: str, folder: Path, most: int = 0, /, **variables: str) -> str:
    """What a script prints, which ends with no exit code above ``most``."""
    # the folder of real data sets is no setting of the service
    own = {name: value for name, value in os.environ.items() if name != "HALFMOON_DATA"}
    environment = {**own, "PATH": f"{BIN}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        ["sh", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode <= most, done.stdout + done.stderr
    return done.stdout


def to_fix(script: str, folder: Path, **variables: str) -> list[str]:
    """Findings of the doctor that are to be fixed, but that this machine is busy."""
    lines = run(script, folder, 1, **variables).splitlines()
    assert any(line.startswith("ok ") for line in lines)
    return [line for line in lines if "FIX" in line and "which is slow" not in line]


def small() -> bytes:
    chance = np.random.default_rng(0)
    labels = np.where(np.arange(60) % 2, "left", "right")
    points = chance.standard_normal((60, 5)) + np.where(labels == "left", 2.0, -2.0)[:, None]
    buffer = io.BytesIO()
    np.savez(buffer, X=points, labels=np.where(np.arange(60) < 20, labels, ""))
    return buffer.getvalue()


def train(service: Service) -> int:
    dataset = service.upload(small(), "points")["id"]
    job = service.wait_for(service.post("/v1/jobs", {"dataset": dataset, "model": "news", "algorithm": "svm"})["id"])
    assert job["state"] == "succeeded", job
    return int(job["model"]["version"])


def test_the_sections(runbook: dict[str, str]) -> None:
    assert list(runbook) == [
        "Check the health",
        "Back up",
        "Restore",
        "Scale out",
        "Install on Kubernetes",
        "Roll a model back",
        "Rotate a key",
    ]


def test_looking_backing_up_rolling_back_rotating_and_restoring(
    runbook: dict[str, str], tmp_path: Path, large_body: bytes
) -> None:
    """A job that the backup found unfinished is run after the restore."""
    data = tmp_path / "data"
    store = open_store(f"file://{data}/store")
    old, _ = ApiKeys(store).create("portal", {Scope.PREDICT})
    ending, _ = ApiKeys(store).create("portal", {Scope.PREDICT}, datetime.now(UTC) + timedelta(days=1))
    with Service(data, tmp_path / "log", drain_seconds="0", lease_seconds=str(2 * HANG)) as service:
        assert to_fix(runbook["Check the health"], tmp_path) == []
        assert [train(service), train(service)] == [1, 2]
        service.client.put("/v1/models/news/aliases/live", json={"version": 2}).raise_for_status()
        unfinished = started(service, large_body, "large")
        (training,) = [process for process in service.named("worker") if process.name() == "halfmoon-job"]
        training.suspend()
        run(runbook["Back up"], tmp_path)
        training.resume()
        told = run(runbook["Roll a model back"], tmp_path, URL=service.url)
        assert '"version":1' in told.splitlines()[-1]
        prediction = service.post("/v1/models/news@live/predict", {"documents": [{"indices": [0]}]})
        assert prediction["version"] == 1
        assert service.client.delete("/v1/models/news/versions/1").status_code == 409
        run(runbook["Rotate a key"], tmp_path)
        states = [(listed.key.name, listed.revoked) for listed in ApiKeys(store).every()]
        assert sorted(states) == [("portal", True), ("portal", True), ("portal-2", False)]
        assert (tmp_path / "new.key").stat().st_mode & 0o077 == 0
        assert (tmp_path / "new.key").read_text().startswith("hm_key-")
    restored = tmp_path / "elsewhere"
    restored.mkdir()
    (tmp_path / "backup.tar").rename(restored / "backup.tar")
    run(runbook["Restore"], restored)
    assert list(Jobs(open_store(f"file://{restored}/data/store")).unfinished_ids()) == [unfinished]
    with Service(restored / "data", tmp_path / "log2") as service:
        assert service.wait_for(unfinished)["state"] == "succeeded"
        assert service.get("/v1/models/news")["aliases"] == {"live": 2}
        assert service.post("/v1/models/news@live/predict", {"documents": [{"indices": [0]}]})["version"] == 2
        assert len(service.get("/v1/jobs")["jobs"]) == 3
        assert train(service) == 3
    assert {listed.key.id for listed in ApiKeys(open_store(f"file://{restored}/data/store")).every()} == {
        old.id,
        ending.id,
    }


def worker(name: str, folder: Path, environment: dict[str, str]) -> Program:
    """A worker as on a machine of its own: with other files."""
    own = {"HALFMOON_CACHE_DIR": str(folder / name), "HALFMOON_TRAINING_THREADS": "1"}
    return Program([str(BIN / "halfmoon"), "worker"], environment | own)


def test_scaling_out_over_a_bucket(runbook: dict[str, str], tmp_path: Path, s3_endpoint: str, valkey: Valkey) -> None:
    from app.settings import GatewaySettings

    httpx.put(f"{s3_endpoint}/halfmoon")
    options = s3_options(s3_endpoint)
    given = {f"AWS_{name.upper()}": value for name, value in options.items()}
    given |= {"HALFMOON_REDIS_URL": valkey.url, "HALFMOON_STORE_URL": "s3://halfmoon/production"}
    script = (
        runbook["Scale out"]
        .replace("redis://redis.internal:6379/0", valkey.url)
        .replace("https://s3.internal", s3_endpoint)
    )
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for name in ("one", "two"):
            stack.enter_context(worker(name, tmp_path, given))
        for name, value in given.items():
            patch.setenv(name, value)
        settings = [GatewaySettings(cache_dir=tmp_path / f"gateway{n}") for n in range(2)]
        urls = [f"http://127.0.0.1:{stack.enter_context(serving(each))}" for each in settings]
        client = stack.enter_context(httpx.Client(verify=False, timeout=HANG))
        until(lambda: client.get(f"{urls[0]}/v1/health/ready").json()["workers"] == 2, SLOW)
        assert to_fix(script, tmp_path, HALFMOON_CACHE_DIR=str(tmp_path / "doctor")) == []
        dataset = client.post(
            f"{urls[0]}/v1/datasets", content=small(), headers={"Content-Type": "application/x-npz"}
        ).json()["id"]
        bodies = [{"dataset": dataset, "model": f"m{n}", "algorithm": "svm"} for n in range(8)]
        jobs = [client.post(f"{urls[n % 2]}/v1/jobs", json=body).json()["id"] for n, body in enumerate(bodies)]
        until(lambda: {client.get(f"{urls[1]}/v1/jobs/{job}").json()["state"] for job in jobs} == {"succeeded"}, SLOW)
        for url in urls:
            answer = client.post(
                f"{url}/v1/models/m0/predict", json={"documents": [{"indices": [0, 1], "values": [9, 9]}]}
            )
            assert answer.json()["labels"] == ["left"], answer.text
        store = open_store("s3://halfmoon/production", tmp_path / "reader", options=options)
        run(runbook["Back up"].replace(" --data data", ""), tmp_path, **given)
        run(
            runbook["Restore"].replace(" --data data", ""),
            tmp_path,
            **given | {"HALFMOON_STORE_URL": "s3://halfmoon/restored"},
        )
        with serving(
            GatewaySettings(store_url="s3://halfmoon/restored", queue="restored", cache_dir=tmp_path / "restored")
        ) as port:
            assert (
                httpx.post(
                    f"http://127.0.0.1:{port}/v1/models/m0/predict", json={"documents": [{"indices": [0]}]}
                ).json()["version"]
                == 1
            )
        assert len({read(store, f"jobs/{job}/attempts/1.json", Attempt).worker for job in jobs}) == 2


def test_the_alerts_ask_for_what_is_measured(
    repository: Path, valkey: Valkey, tmp_path: Path, contract: dict[str, Any]
) -> None:
    from app.settings import GatewaySettings
    from storage.queue.connection import connect
    from storage.queue.redis_state import RedisState

    rules = yaml.safe_load((repository / "docs/alerts.yml").read_text())["groups"][0]["rules"]
    asked = {name for rule in rules for name in re.findall(r"\b(?:halfmoon|process)_\w+", rule["expr"])}
    with connect(valkey.url, HANG) as redis:
        RedisState(redis).count_outcome("svm", "failed", 1.0)
    settings = GatewaySettings(store_url=f"file://{tmp_path}/store", redis_url=valkey.url)
    with serving(settings) as port:
        url = f"http://127.0.0.1:{port}"
        httpx.post(f"{url}/v1/datasets", json={"documents": [{"indices": [0]}]}).raise_for_status()
        told = {
            re.split(r"[{ ]", line)[0]
            for line in httpx.get(f"{url}/metrics").text.splitlines()
            if not line.startswith("#")
        }
    paths = set(contract["paths"])
    assert asked <= told
    for rule in rules:
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        by = re.search(r"\bby \(([\w, ]+)\)", rule["expr"])
        assert shown <= (set(re.split(", *", by[1])) if by else set()), (
            "an aggregation drops the labels that it is not by"
        )
    watched = {
        path for pattern in re.findall(r'route=~"([^"]+)"', str(rules)) for path in paths if re.fullmatch(pattern, path)
    }
    assert watched == {path for path in paths if path.endswith(("/predict", "/infer"))}
    assert len(watched) >= 3
    assert len(rules) >= 10
