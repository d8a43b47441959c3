"""Jobs that name an encoder, and predictions by a model that reads texts by one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.documents.kinds import TextRows
from core.documents.part_columns import Block, EncoderId, PartColumns
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS
from core.models.model import LinearModel
from core.options.text import TextOptions
from storage.errors import CannotStart
from storage.process.settings import Settings
from storage.repositories.datasets.encodings import KeptVectors, digest_of
from tests.app.conftest import Gateway, Start, problem_of, publish
from tests.workers.encoders.tiny import static_folder
from workers.encoders.catalogue import Encoders

pytest.importorskip("tokenizers", reason="the extra encoders is not installed")

TEXTS = [{"text": "goal late", "label": "sport"}, {"text": "vote late", "label": "politics"}, {"text": "late"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return static_folder(tmp_path / "tiny")


@pytest.fixture
def gateway(start: Start, folder: Path) -> Gateway:
    return start(encoders={"tiny": folder})


def reading(folder: Path) -> LinearModel:
    """A model of the vectors alone."""
    terms = fit_terms(TextRows.of(["goal", "goal"]), TextOptions(), lambda done, held: None)
    columns = PartColumns([Block("text", terms, 1), Block("vector.tiny", NUMBERS, 3)])
    columns = PartColumns(columns.blocks, Encoders({"tiny": folder}).id("tiny"))
    weights = np.array([[0.0], [1.0], [-1.0], [0.0]])
    return LinearModel(
        ["politics", "sport"], 4, np.arange(4, dtype=np.uint32), weights, np.zeros(1), vocabulary=columns
    )


def test_a_job_takes_the_encoder_of_now(gateway: Gateway) -> None:
    dataset = gateway.upload(TEXTS)["id"]
    body, key = {"dataset": dataset, "model": "m", "encoder": "tiny"}, {"Idempotency-Key": "k"}
    job = gateway.client.post("/v1/jobs", json=body, headers=key).json()
    assert (job["encoder"]["name"], len(job["encoder"]["digest"])) == ("tiny", 64)
    assert gateway.client.post("/v1/jobs", json=body, headers=key).json()["id"] == job["id"]
    problem_of(gateway.client.post("/v1/jobs", json=body | {"encoder": None}, headers=key), 422)
    fault = problem_of(gateway.client.post("/v1/jobs", json=body | {"encoder": "other"}), 422)["errors"][0]
    assert (fault["field"], fault["detail"]) == ("encoder", "'other' is not known here; HALFMOON_ENCODERS names tiny")


def test_a_job_that_names_none_takes_the_default_one(start: Start, folder: Path) -> None:
    """Not for documents without text, nor for those that bring a vector; it goes on with the encoder of a model."""
    gateway = start(encoders={"tiny": folder, "other": folder}, encoder="other")
    texts = gateway.upload(TEXTS)["id"]

    def taken(dataset: str, **fields: Any) -> Any:
        answer = gateway.client.post("/v1/jobs", json={"dataset": dataset, "model": "m"} | fields)
        assert answer.status_code == 202, answer.text
        return answer.json()["encoder"] and answer.json()["encoder"]["name"]

    assert (taken(texts), taken(texts, encoder=None), taken(texts, encoder="tiny")) == ("other", None, "tiny")
    assert taken(gateway.upload([document | {"vector": [1, 2]} for document in TEXTS])["id"]) is None
    assert taken(gateway.upload([{"vector": [1], "label": "a"}, {"vector": [2], "label": "b"}])["id"]) is None
    publish(gateway.store, model=reading(folder))
    assert taken(texts, algorithm="svm", start_from="news") == "tiny"


def test_a_default_encoder_that_is_not_known_stops_the_start(start: Start, folder: Path) -> None:
    with pytest.raises(
        CannotStart, match=r"HALFMOON_ENCODER names 'else', which is not known here; known are .*tiny, none"
    ):
        Encoders.of(Settings(encoders={"tiny": folder}, encoder="else"))


def test_encoders_are_listed(gateway: Gateway, folder: Path) -> None:
    (listed,) = gateway.client.get("/v1/encoders").json()["encoders"]
    assert listed.pop("texts_per_second") > 0
    assert listed == {
        "name": "tiny",
        "default": False,
        "digest": Encoders({"tiny": folder}).id("tiny").digest,
        "width": 3,
    }


def test_documents_that_have_no_text_or_that_vector_are_refused(gateway: Gateway) -> None:
    for documents, detail in (
        ([{"indices": [0], "label": "a"}, {"indices": [1], "label": "b"}], "reads text, but the documents are vectors"),
        (
            [document | {"vectors": {"tiny": [1, 2]}} for document in TEXTS],
            "makes the part vector.tiny, which the documents have already",
        ),
    ):
        dataset = gateway.upload(documents)["id"]
        fault = problem_of(
            gateway.client.post("/v1/jobs", json={"dataset": dataset, "model": "m", "encoder": "tiny"}), 422
        )["errors"][0]
        assert (fault["field"], fault["detail"]) == ("encoder", detail)


START = {"model": "m", "algorithm": "svm", "start_from": "news"}


def test_a_start_from_a_model_with_the_same_encoder(gateway: Gateway, folder: Path) -> None:
    publish(gateway.store, model=reading(folder))
    body = START | {"dataset": gateway.upload(TEXTS)["id"], "encoder": "tiny"}
    job = gateway.client.post("/v1/jobs", json=body)
    assert (job.status_code, job.json()["start_from"]["version"]) == (202, 1), job.text
    sent = gateway.upload([document | {"vectors": {"tiny": [1, 2, 3]}} for document in TEXTS])["id"]
    assert gateway.client.post("/v1/jobs", json=START | {"dataset": sent}).status_code == 202, (
        "the vectors were sent with the documents"
    )


def test_a_start_from_a_model_with_another_encoder_is_refused_with_the_remedy(gateway: Gateway, folder: Path) -> None:
    model, dataset = reading(folder), gateway.upload(TEXTS)["id"]
    columns = model.vocabulary
    assert isinstance(columns, PartColumns)
    publish(gateway.store, "same", model=model)
    publish(
        gateway.store, "digest", model=replace(model, vocabulary=replace(columns, encoder=EncoderId("tiny", "0" * 64)))
    )
    publish(gateway.store, "sent", model=replace(model, vocabulary=replace(columns, encoder=None)))
    terms = columns.blocks[0].vocabulary
    publish(
        gateway.store,
        "text",
        model=LinearModel(model.classes, 1, model.features[:1], model.coefficients[:1], np.zeros(1), vocabulary=terms),
    )
    trained = "the model was trained on text, vector.tiny, but the documents have text"
    for body, detail in (
        (
            {"start_from": "same", "encoder": None},
            f'{trained}; the model learned with "encoder": "tiny", so name that, or train without start_from',
        ),
        (
            {"start_from": "digest", "encoder": "tiny"},
            "the model learned with another encoder 'tiny' (000000000000) than the one here",
        ),
        ({"start_from": "sent"}, f"{trained}; train without start_from"),
        (
            {"start_from": "text", "encoder": "tiny"},
            "the model was trained on text, but the documents have text and vector.tiny; leave out encoder, or "
            "train without start_from",
        ),
    ):
        fault = problem_of(gateway.client.post("/v1/jobs", json=START | {"dataset": dataset} | body), 422)["errors"][0]
        assert fault["field"] == "start_from"
        assert fault["detail"].startswith(detail)


def test_predictions_of_texts_run_the_encoder(gateway: Gateway, folder: Path) -> None:
    publish(gateway.store, model=reading(folder))
    documents = [{"text": "goal goal"}, {"text": "a vote"}, {"text": "goal", "vectors": {"tiny": [0, 5, 0]}}]
    answer = gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()
    assert answer["scores"] == [[1.0], [-1.0], [-1.0]]
    answer = gateway.client.post("/v1/models/news/explain", json={"documents": documents[:1]}).json()
    assert (answer["documents"][0]["parts"], answer["weights"][0]["for"]) == ({"text": 0, "vector.tiny": 1}, [])
    dataset = gateway.upload(TEXTS)["id"]
    suggested = gateway.client.post("/v1/models/news/suggest", json={"dataset": dataset, "n": 1})
    assert suggested.status_code == 200, suggested.text


def test_texts_of_a_dataset_are_scored_by_the_vectors_that_are_kept(gateway: Gateway, folder: Path) -> None:
    """Another text has none; an evaluation makes its vector."""
    publish(gateway.store, model=reading(folder))
    dataset, digest = gateway.upload(TEXTS)["id"], Encoders({"tiny": folder}).id("tiny").digest
    with KeptVectors(gateway.store, dataset, digest) as kept:
        kept.add({digest_of("goal late"): np.array([0.0, 1, 0]), digest_of("late"): np.array([3.0, 0, 0])})
    page = gateway.client.get(f"/v1/datasets/{dataset}/documents", params={"model": "news"}).json()
    assert [document["score"] for document in page["documents"]] == [-1, 0, 1], "[1, -1, 0] by the encoder"
    answer = gateway.client.post("/v1/models/news/evaluate", json={"dataset": dataset}).json()
    assert answer["accuracy"] == 0.5, answer


def test_a_model_whose_encoder_is_not_here_says_so(start: Start, folder: Path) -> None:
    gateway = start()
    publish(gateway.store, model=reading(folder))
    problem = problem_of(gateway.client.post("/v1/models/news/predict", json={"documents": [{"text": "goal"}]}), 409)
    assert "the encoder 'tiny', which is not known here" in problem["detail"]
