"""The panel's tasks come in an order that covers sets and draws evenly, and rounds of labels follow the service."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from app.predictions.schemas import Strategy
from benchmarks.panel import tasks as panel
from benchmarks.panel.automatic import answered, suggested
from benchmarks.panel.sets import Documents
from benchmarks.panel.tasks import A_ROUND, DRAWS, STRATEGIES, Task
from core.documents.drawn import Draw
from core.documents.rows import SparseRows
from core.train import Training, TrainingContext, TrainingTask, train
from core.validation.confidence import Confidence

SETS = ["words", "numbers", "classes"]


def documents(name: str) -> Documents:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4 if name == "classes" else 2, 400).astype(np.int32)
    density = 0.5 if name == "numbers" else 0.05
    return Documents(sp.csr_matrix(sp.random(400, 50, density, random_state=0)), truth, np.unique(truth).tolist())


@pytest.fixture(autouse=True)
def _sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "documents", documents)
    monkeypatch.setattr(panel, "LABELS", dict.fromkeys(SETS, 10))


def test_every_beginning_has_sets_and_draws_evenly() -> None:
    times = {"even-half", "even-twice", "random-half", "random-twice"}
    found = list(panel.tasks(SETS, list(DRAWS), 2))
    assert len(found) == len(set(found))
    assert {task.draw for task in found if task.name == "classes"} == {*DRAWS} - times
    assert {*DRAWS} - {task.draw for task in found if task.name == "numbers"} == {"found", "more-middle"} | times
    for end in range(6, len(found)):
        of_sets = Counter(task.name for task in found[:end])
        assert max(of_sets.values()) - min(of_sets.values()) <= 8  # some draws are of many classes alone
    halves = Counter(task.draw for task in found[: len(DRAWS)])
    assert max(halves.values()) <= 3


def test_a_large_set_comes_seldom_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "LARGE", ("classes",))
    found = list(panel.tasks(SETS, list(DRAWS), 1))
    assert {*found} == {*_as_if_small(monkeypatch)}
    assert sum(task.name == "classes" for task in found[: len(found) // 2]) <= 4


def _as_if_small(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    monkeypatch.setattr(panel, "LARGE", ())
    return list(panel.tasks(SETS, list(DRAWS), 1))


@pytest.mark.parametrize("draw", DRAWS)
def test_labels_of_a_task_are_the_same_again(draw: str) -> None:
    first, second = (panel.labels_of(Task("classes", draw, 3)) for _ in range(2))
    assert np.array_equal(first.positions, second.positions)
    factor = {"half": 0.5, "twice": 2}.get(draw.split("-")[-1], 1)
    assert len(first.told) == (55 if draw.startswith("more") else 40 * factor)


@pytest.fixture(scope="module")
def rows() -> SparseRows:
    rng = np.random.default_rng(1)
    values = (rng.standard_normal((300, 4)) + np.repeat([[2.0], [-2.0]], 150, axis=0)).astype(np.float32)
    return SparseRows(
        np.arange(0, 1201, 4, dtype=np.int64), np.tile(np.arange(4, dtype=np.uint32), 300), values.ravel(), 4
    )


@pytest.fixture(scope="module")
def training(rows: SparseRows) -> Training:
    known = np.full(300, -1, np.int32)
    known[[*range(10), *range(150, 160)]] = np.repeat([0, 1], 10)
    return train(TrainingTask(rows, known, [0, 1], "auto", {}), TrainingContext(threads=1))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_round_is_mixed_with_random_documents_as_the_service_does(
    training: Training, rows: SparseRows, strategy: Strategy
) -> None:
    found = suggested(training, rows, strategy, A_ROUND, seed=0)
    assert len(found) == A_ROUND
    assert {*found} <= set(training.unlabeled.tolist())
    assert sum(draw is Draw.RANDOM for draw in found.values()) == (A_ROUND if strategy == "random" else 5)
    truth = np.repeat([0, 1], 150).astype(np.int32)
    labels = answered(found, truth)
    assert labels.positions.tolist() == list(found)
    assert labels.drawn.tolist() == list(found.values())
    assert np.array_equal(labels.told, truth[labels.positions])


@pytest.mark.parametrize("known", [Confidence(20, 9, 0.5), Confidence(5, 5, 0.5)])
def test_a_model_that_knows_too_little_suggests_random_documents(
    training: Training, rows: SparseRows, known: Confidence
) -> None:
    assert {*suggested(replace(training, confidence=known), rows, "uncertain", A_ROUND, seed=0).values()} == {
        Draw.RANDOM
    }
