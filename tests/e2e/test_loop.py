"""Active learning with real documents: suggest, label, train from the last version, and again."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cli.demo import Vectors
from tests.e2e.service import Service, as_npz

ROUNDS, EACH = 3, 40


def error_on(service: Service, text: Vectors, positions: NDArray[np.int64]) -> float:
    """Accuracy of the newest version on the documents at these positions, which are sent as new ones."""
    answer = service.client.post(
        "/v1/models/loop/predict", content=as_npz(text.rows[positions]), headers={"Content-Type": "application/x-npz"}
    ).json()
    return float(np.mean(np.array(answer["labels"]) != text.labels[positions]))


def train(service: Service, dataset: str, **more: Any) -> Any:
    options = {"positive_fraction": 0.5, "labels_drawn": "chosen"}
    job = service.post(
        "/v1/jobs", {"dataset": dataset, "model": "loop", "algorithm": "tsvm", "options": options, **more}
    )
    done = service.wait_for(job["id"])
    assert (done["state"], done["status"]) == ("succeeded", "converged")
    return done


def test_suggest_label_train_and_again(service: Service, text: Vectors) -> None:
    # the pool is the first thousand documents; the others are never sent but to judge by
    pool, others = np.arange(1000), np.arange(1000, 1500)
    first = np.concatenate([np.flatnonzero(text.labels[pool] == name)[:5] for name in np.unique(text.labels)])
    known = np.isin(pool, first)
    dataset = service.upload(as_npz(text.rows[pool], labels=np.where(known, text.labels[pool], "")), "text")["id"]
    train(service, dataset)
    errors = [error_on(service, text, others)]
    asked: set[int] = set(first.tolist())
    for turn in range(ROUNDS):
        found = service.post("/v1/models/loop/suggest", {"dataset": dataset, "n": EACH})
        assert (found["version"], found["n_unlabeled"], found["margin_of"]) == (turn + 1, 1000 - len(asked), "scores")
        ids = [document["id"] for document in found["suggestions"]]
        assert len(set(ids)) == EACH
        assert asked.isdisjoint(map(int, ids))
        asked |= set(map(int, ids))
        answer = service.client.put(
            f"/v1/datasets/{dataset}/labels", json={"labels": {id: str(text.labels[int(id)]) for id in ids}}
        )
        assert answer.status_code == 201, answer.text
        dataset = answer.json()["id"]
        assert answer.json()["n_labeled"] == len(asked)
        assert train(service, dataset, start_from="loop")["start_from"] == {"name": "loop", "version": turn + 1}
        errors.append(error_on(service, text, others))
    # 10 labels, then 130; that random labels do better on these documents is told in docs/learning-curves.md
    assert errors[-1] < 0.29 < errors[0], errors
    reasons = service.post("/v1/models/loop/explain", {"n": 3})
    assert [len(reasons["weights"][0][side]) for side in ("for", "against")] == [3, 3]
