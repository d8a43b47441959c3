"""Several labels of a document, from the upload over a job without an option to predictions and their evaluation."""

from typing import Any

import numpy as np
import pytest

from tests.e2e.service import Service

WORDS = {"grain": ["barley", "harvest", "grain"], "ship": ["vessel", "harbour", "ship"], "money": ["money", "rate"]}


def texts(n: int) -> list[dict[str, Any]]:
    """Texts of labels whose words they have; the last ones have no label."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(n):
        labels = [label for label in WORDS if rng.random() < 0.35]
        words = [rng.choice(WORDS[label]) for label in labels for _ in range(2)]
        words += [f"word{rng.integers(20)}" for _ in range(5)]
        found.append({"id": f"d{number}", "text": " ".join(words), "truth": labels})
    return found


def test_labels_in_and_a_model_of_several_out(service: Service) -> None:
    documents = texts(300)
    sent = [
        {"id": each["id"], "text": each["text"], **({"labels": each["truth"]} if place < 60 else {})}
        for place, each in enumerate(documents)
    ]
    dataset = service.post("/v1/datasets", {"documents": sent})
    assert dataset["label_kind"] == "several"
    job = service.wait_for(service.post("/v1/jobs", {"dataset": dataset["id"], "model": "topics"})["id"])
    assert (job["state"], job["algorithm"]) == ("succeeded", "auto")
    assert job["report"]["held_out"]["f1_micro"] > 0.8
    assert job["report"]["names"] > 0

    lines = service.labels(job["id"])
    assert [line["id"] for line in lines] == [each["id"] for each in documents[60:]]
    right = [set(line["labels"]) == set(each["truth"]) for line, each in zip(lines, documents[60:], strict=True)]
    assert np.mean(right) > 0.8
    assert all({*line["labels"]} <= {*line["probabilities"]} for line in lines)
    table = service.client.get(f"/v1/jobs/{job['id']}/labels", headers={"accept": "text/csv"}).text.splitlines()
    assert table[:2] == ["id,labels", f"d60,{';'.join(lines[0]['labels'])}"]

    version = service.get("/v1/models/topics")["versions"][0]
    assert (version["label_kind"], version["classes"]) == ("several", sorted(WORDS))
    asked = [{"id": each["id"], "text": each["text"]} for each in documents[60:90]]
    predicted = service.post("/v1/models/topics/predict", {"documents": asked})
    assert predicted["labels"] == [line["labels"] for line in lines[:30]]
    one = service.post("/v1/models/topics/label", {"text": asked[0]["text"]})
    assert one == {name: lines[0][name] for name in ("labels", "probabilities")}

    truth = [{"text": each["text"], "labels": each["truth"]} for each in documents[60:]]
    found = service.post("/v1/models/topics/evaluate", {"documents": truth})
    assert found["several"]["f1_micro"] == found["micro_f1"] > 0.9
    assert found["several"]["subset_accuracy"] == found["accuracy"] == np.mean(right)
    assert found["several"]["expected_error"] < 0.1

    explained = service.post("/v1/models/topics/explain", {"documents": asked[:1], "class": "ship"})
    assert {each["class"] for each in explained["weights"]} == set(WORDS)
    assert {each["name"] for each in explained["weights"][2]["for"][:3]} & set(WORDS["ship"])
    suggested = service.post("/v1/models/topics/suggest", {"dataset": dataset["id"], "n": 5})["suggestions"]
    assert len({each["id"] for each in suggested} - {each["id"] for each in documents[:60]}) == 5

    again = service.post("/v1/datasets", {"documents": [*sent[:60], *(each | {"labels": []} for each in sent[60:90])]})
    worse = service.wait_for(service.post("/v1/jobs", {"dataset": again["id"], "model": "topics"})["id"])
    assert worse["comparison"]["against"] == 1
    assert worse["comparison"]["labels"] == 30
    assert "documents with labels that neither was told" in worse["comparison"]["why"]


def test_a_tree_of_labels_answers_as_deep_as_it_is_sure(service: Service) -> None:
    rng = np.random.default_rng(1)
    words = {"news/grain": "barley harvest", "news/ship": "vessel harbour", "ads": "sale bargain"}
    names = [*words]
    sent: list[dict[str, Any]] = []
    for number in range(240):
        label = names[number % 3]
        own = "" if label != "ads" and rng.random() < 0.3 else words[label]
        text = f"{own} {'report ' * (label != 'ads')}" + " ".join(f"w{each}" for each in rng.integers(20, size=4))
        sent.append({"id": f"d{number}", "text": text, **({"label": label} if number < 60 else {})})
    dataset = service.post("/v1/datasets", {"documents": sent})
    body = {"dataset": dataset["id"], "model": "tree", "nested": True}
    job = service.wait_for(service.post("/v1/jobs", body)["id"])
    assert (job["state"], job["nested"]) == ("succeeded", True)
    report = job["report"]["nested"]
    assert report["f1"] > 0.8
    depths = [point["depth"] for point in report["curve"]]
    assert depths == sorted(depths, reverse=True)
    lines = service.labels(job["id"])
    assert {line["label"] for line in lines} == {"ads", "news", "news/grain", "news/ship"}
    for line in lines:
        assert line["path"][line["label"]] == line["probability"]
    asked = {"documents": [{"text": each["text"]} for each in sent[60:90]]}
    assert service.post("/v1/models/tree/predict", asked)["labels"] == [line["label"] for line in lines[:30]]
    one = service.post("/v1/models/tree/label", {"text": sent[60]["text"]})
    assert one["label"] == lines[0]["label"]
    assert one["path"] == pytest.approx(lines[0]["path"])
    assert one["probability"] == one["path"][one["label"]]
    refused = service.client.post("/v1/jobs", json=body | {"algorithm": "svm"})
    assert refused.status_code == 422
    assert "needs probabilities" in refused.json()["detail"]
