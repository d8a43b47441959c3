"""Weak supervision over HTTP, as ``halfmoon up`` serves it: votes with few labels, and documents of one class."""

import numpy as np
import pytest

from tests.e2e.service import Service

N = 240
TOPICS = (
    ["cup", "match", "goal", "team", "coach", "season", "referee", "stadium", "league", "player", "striker"],
    ["bank", "rate", "bond", "market", "share", "profit", "dividend", "trader", "currency", "stock", "fund"],
)


def texts(seed: int) -> tuple[list[str], np.ndarray]:
    """Short texts of two topics, a third of which are of the second, and their topics."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(N) < 1 / 3).astype(int)
    words = [rng.choice(TOPICS[topic] if rng.random() < 0.95 else TOPICS[1 - topic], 5) for topic in truth]
    return [" ".join(each) for each in words], truth


def test_votes_with_few_labels(service: Service) -> None:
    found, truth = texts(0)
    names, documents = ["sport", "money"], []
    for number, (text, topic) in enumerate(zip(found, truth.tolist(), strict=True)):
        votes = {
            rule: label for rule, label in (("cup", "sport"), ("bank", "money"), ("share", "money")) if rule in text
        }
        votes |= {"ada": names[1 - topic if number % 8 == 1 else topic]} if number % 2 else {}
        document = {"id": str(number), "text": text, "votes": votes}
        documents.append(document | ({"label": names[topic]} if number < 12 else {}))
    job = service.post("/v1/jobs", {"documents": documents, "model": "voted"})
    done = service.wait_for(job["id"])
    assert done["state"] == "succeeded", done
    voters = done["report"]["voters"]
    assert set(voters) == {"ada", "bank", "cup", "share"}
    assert voters["ada"]["coverage"] == pytest.approx(0.5)
    assert voters["ada"]["low"] <= 0.75 <= voters["ada"]["high"]
    lines = service.labels(job["id"])
    assert [int(line["id"]) for line in lines] == list(range(12, N))
    assert np.mean([line["label"] == names[truth[int(line["id"])]] for line in lines]) > 0.9
    answer = service.post("/v1/models/voted/predict", {"documents": [{"text": "the coach of the team"}]})
    assert answer["labels"] == ["sport"]


def test_labels_of_one_class(service: Service) -> None:
    found, truth = texts(1)
    known = np.flatnonzero(truth)[:15]
    documents = [
        {"id": str(number), "text": text, **({"label": "money"} if number in known else {})}
        for number, text in enumerate(found)
    ]
    job = service.post("/v1/jobs", {"documents": documents, "model": "money", "other": "rest"})
    assert job["other"] == "rest"
    done = service.wait_for(job["id"])
    assert done["state"] == "succeeded", done
    rest = np.delete(truth, known)
    share = done["report"]["share"]
    assert share["low"] <= rest.mean() <= share["high"]
    lines = service.labels(job["id"])
    assert np.mean([line["label"] == ("money" if own else "rest") for line, own in zip(lines, rest, strict=True)]) > 0.9
    answer = service.post("/v1/models/money/predict", {"documents": [{"text": "bond rate"}, {"text": "goal match"}]})
    assert answer["labels"] == ["money", "rest"]
    assert any("chosen at random among their kind" in warning for warning in done["warnings"])
