"""The way of a user through the service with real documents: upload, train, labels, predict."""

import re
from collections import Counter

import numpy as np
import pytest

from app.cli.demo import ASKED, KNOWN, MODULES, Vectors, demo, documents_of, load_texts
from tests.e2e.service import Service, as_npz


def test_few_labels_in_and_a_model_that_predicts_out(service: Service, text: Vectors) -> None:
    dataset = service.upload(as_npz(text.rows, labels=np.where(text.labeled, text.labels, "")), "text")
    assert (dataset["n_documents"], dataset["n_labeled"], dataset["n_features"]) == (1500, 100, 11960)
    job = service.post("/v1/jobs", {"dataset": dataset["id"], "model": "main", "algorithm": "tsvm"})
    done = service.wait_for(job["id"])
    assert (done["state"], done["status"], done["model"]) == ("succeeded", "converged", {"name": "main", "version": 1})

    given = service.labels(job["id"])
    hidden = np.flatnonzero(~text.labeled)
    assert [int(line["id"]) for line in given] == hidden.tolist()
    error = np.mean([line["label"] != truth for line, truth in zip(given, text.labels[hidden], strict=True)])
    assert error <= 0.25  # a supervised SVM errs on 29 %

    answer = service.client.post(
        "/v1/models/main/predict", content=as_npz(text.rows[hidden[:50]]), headers={"Content-Type": "application/x-npz"}
    ).json()
    assert answer["labels"] == [line["label"] for line in given[:50]]
    np.testing.assert_allclose(np.ravel(answer["scores"]), [line["score"] for line in given[:50]], rtol=1e-5, atol=1e-5)


def test_the_demo_runs_against_a_running_service(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(service.url) == 0
    shown = capsys.readouterr().out
    assert all(
        title in shown
        for title in ("supervised SVM", "transductive SVM", "deterministic annealing", f"auto, {ASKED} labels more")
    )
    for name in ("functions", "vectors-da", "vectors-svm", "vectors-tsvm"):
        assert service.get(f"/v1/models/{name}")["name"] == name
    evaluated = [re.findall(r"[\d.]+", line) for line in shown.split("Evaluation on")[1].splitlines() if "%" in line]
    (_, of_few, before, *_), (_, of_more, after, *_) = evaluated[1:]
    assert (int(of_few), int(of_more)) == (4 * KNOWN, 4 * KNOWN + ASKED)
    assert float(after) < float(before)
    assert "An encoder would know what the words mean" in shown
    assert "for the first sentence? Contributions of its terms: " in shown
    assert "All of it worked, in " in shown


def test_the_texts_of_the_demo_are_those_of_functions() -> None:
    texts = load_texts()
    assert {text.id for text in texts.pool} & {text.id for text in texts.kept_back} == set()
    labels = [document.get("label") for document in documents_of(texts)]
    assert Counter(label for label in labels if label) == dict.fromkeys(MODULES, KNOWN)
    assert all(
        text.id.startswith(f"{text.label}.") and not re.search("^-{3}", text.text, re.MULTILINE) for text in texts.pool
    )
