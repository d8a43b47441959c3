"""Text and named features through the whole service: trained on, and predicted."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.service import Service
from tests.workers.worker.test_inputs import texts

TRUTH = ["sport", "politics"] * 60
Documents = list[dict[str, Any]]


def as_text(texts: list[str]) -> Documents:
    return [{"text": text} for text in texts]


def as_features(texts: list[str]) -> Documents:
    return [{"features": {word: text.split().count(word) for word in text.split()}} for text in texts]


@pytest.mark.parametrize(("kind", "made", "algorithm"), [("text", as_text, "tsvm"), ("features", as_features, "svm")])
def test_documents_in_and_a_model_that_reads_them_out(
    service: Service, kind: str, made: Callable[[list[str]], Documents], algorithm: str
) -> None:
    """Of a model that was trained on few labels and many documents, and is named like their kind."""
    documents = made(texts(120))
    for document, label in zip(documents[:12], TRUTH[:12], strict=True):
        document["label"] = label
    dataset = service.post("/v1/datasets", {"documents": documents})
    assert (dataset["kind"], dataset["n_labeled"]) == (kind, 12)
    job = service.post("/v1/jobs", {"dataset": dataset["id"], "model": kind, "algorithm": algorithm})
    done = service.wait_for(job["id"])
    assert (done["state"], done["error"]) == ("succeeded", None)
    wrong = [
        line["id"] for line, label in zip(service.labels(job["id"]), TRUTH[12:], strict=True) if line["label"] != label
    ]
    assert len(wrong) <= 1  # of 108, where the fraction is estimated
    version = service.get(f"/v1/models/{kind}/versions/1")
    assert version["kind"] == kind
    assert version["n_features"] == version["facts"]["n_terms" if kind == "text" else "n_names"] > 12
    answer = service.post(f"/v1/models/{kind}/predict", {"documents": made(texts(40, seed=1))})
    assert (answer["labels"], answer["warnings"]) == (TRUTH[:40], [])
