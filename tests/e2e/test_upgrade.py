"""The upgrade of the runbook: this version reads the store of an earlier one, and its jobs go on.

``earlier-store.tar.gz`` was made by ``tests.e2e.earlier`` with the version of commit d48da2f.
"""

import tarfile
from pathlib import Path

import pytest

from storage.repositories.api_keys import ApiKeys
from storage.repositories.jobs import Jobs
from storage.repositories.webhooks import Webhooks
from storage.store import open_store
from tests.e2e.earlier import points
from tests.e2e.service import Service

_DOCUMENTS = {"documents": [{"indices": [0, 1, 2, 3, 4], "values": [2, 2, 2, 2, 2]}, {"indices": [0, 1, 2, 3, 4]}]}


@pytest.fixture
def data(tmp_path: Path, repository: Path) -> Path:
    folder = tmp_path / "data"
    with tarfile.open(repository / "tests/e2e/earlier-store.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.mark.slow
def test_what_an_earlier_version_has_left_goes_on(data: Path, tmp_path: Path) -> None:
    store = open_store((data / "store").as_uri())
    slow, waiting = Jobs(store).unfinished_ids()
    assert (Jobs(store).get(slow).attempt, Jobs(store).deaths(slow)) == (1, 0), "it was handed back"
    changing = {"open", "outbox", "queue.json"}
    files = [file for file in (data / "store").rglob("*") if file.is_file() and not changing & set(file.parts)]
    before = {file: file.read_bytes() for file in files}
    with Service(data, tmp_path / "log") as service:
        assert service.wait_for(waiting)["model"] == {"name": "waiting", "version": 1}
        done = service.wait_for(slow)
        assert (done["state"], done["attempt"], done["error"]) == ("succeeded", 2, None)
        assert service.get("/v1/models/news")["aliases"] == {"live": 1}
        for reference, version in (("news@live", 1), ("news", 2), ("slow", 1)):
            prediction = service.post(f"/v1/models/{reference}/predict", _DOCUMENTS)
            assert (prediction["version"], prediction["labels"]) == (version, ["left", "right"])
        jobs = service.get("/v1/jobs")["jobs"]
        assert {job["state"] for job in jobs} == {"succeeded"}
        for job in jobs:
            assert service.get(f"/v1/jobs/{job['id']}/trace")["points"]
            labels = {"sport", "politics"} if job["model_name"] == "topics" else {"left", "right"}
            assert {line["label"] for line in service.labels(job["id"])} == labels
        datasets = {each["sha256"]: each["id"] for each in service.get("/v1/datasets")["datasets"]}
        assert len(datasets) == 4
        # the same documents have the same digest still
        dataset = datasets[service.upload(points(), "again")["sha256"]]
        again = service.post(
            "/v1/jobs", {"dataset": dataset, "model": "news", "algorithm": "svm", "start_from": "news@live"}
        )
        assert service.wait_for(again["id"])["model"]["version"] == 3
        _check_texts(service)
    assert [(webhook.url, list(webhook.events)) for webhook in Webhooks(store).every()] == [
        ("http://127.0.0.1:9/told", ["job.ended"])
    ]
    assert [(listed.key.name, listed.revoked) for listed in ApiKeys(store).every()] == [("portal", False)]
    assert {file: file.read_bytes() for file in before} == before, "what is written once is never changed"


def _check_texts(service: Service) -> None:
    """The texts, their annotations, their audit and the model of ``auto`` are read."""
    version = service.get("/v1/models/topics/versions/1")
    assert (version["algorithm"], version["kind"], version["classes"]) == ("auto", "text", ["politics", "sport"])
    job = service.get(f"/v1/jobs/{version['job']}")
    assert (job["annotations"], job["dataset"], bool(job["report"]["summary"])) == (5, version["dataset"], True)
    dataset = f"/v1/datasets/{version['dataset']}"
    described = service.get(dataset)
    assert (described["name"], described["kind"], described["n_labeled"]) == ("texts", "text", 12)
    [audit] = service.get(f"{dataset}/audits")["audits"]
    told = service.get(f"{dataset}/annotations")["annotations"]
    assert [entry["document"] for entry in told] == [*audit["documents"], audit["documents"][0]]
    assert [entry["action"] for entry in told] == [*["label"] * 4, "undo"]
    assert service.get(f"{dataset}/audits/{audit['id']}")["labeled"] == 3
    [first] = service.get(f"{dataset}/documents?limit=1&model=topics")["documents"]
    assert (first["label"], first["text"].split()[-2]) == ("sport", "the")
    texts = {"documents": [{"text": "goal keeper match"}, {"text": "vote senate party"}]}
    assert service.post("/v1/models/topics/predict", texts)["labels"] == ["sport", "politics"]
