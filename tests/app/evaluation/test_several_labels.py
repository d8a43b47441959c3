"""Evaluation of a model of several labels: its figures, and what it holds of the documents."""

import tempfile
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn import metrics

from app.evaluation.evaluator import SeveralEvaluator
from app.evaluation.report import PLOTS
from app.predictions.scoring import score_posted
from core.documents.rows import SparseRows
from core.models.model import LinearModel
from core.validation.label_calibration import LabelCalibration
from storage.records import Label
from storage.repositories.datasets import Batch
from storage.repositories.datasets.labels import LabelLists
from tests.app.conftest import Start, problem_of, publish
from tests.memory import measured

N_LABELS = 50
MODEL = LinearModel(
    [f"l{place}" for place in range(N_LABELS)],
    N_LABELS,
    np.arange(N_LABELS, dtype=np.uint32),
    np.eye(N_LABELS),
    np.full(N_LABELS, -0.5),
    calibration=LabelCalibration(np.full(N_LABELS, 4.0), np.zeros(N_LABELS), np.full(N_LABELS, 0.5)),
)


def batches(count: int, n_rows: int) -> Iterator[Batch]:
    """Documents that all have the label of their one feature."""
    rows = SparseRows(
        np.arange(n_rows + 1),
        np.arange(n_rows, dtype=np.uint32) % N_LABELS,
        np.ones(n_rows, np.float32),
        N_LABELS,
    )
    labels: list[list[Label]] = [[MODEL.classes[row % N_LABELS]] for row in range(n_rows)]
    for _ in range(count):
        yield Batch(rows, [None] * n_rows, label_lists=LabelLists(labels, [None] * n_rows))


@pytest.mark.parametrize(("most", "ranked"), [(1_500_000, 1.0), (1_499_999, None)])
def test_memory_does_not_grow_with_the_documents(most: int, ranked: float | None) -> None:
    with tempfile.TemporaryFile() as file, measured() as memory:
        evaluator = SeveralEvaluator(MODEL, file, most)
        evaluator.add_all(score_posted(MODEL, batches(60, 500)))
        figures = evaluator.figures()
    assert (figures["labeled"], figures["accuracy"]) == (30_000, 1.0)
    assert [each.average_precision for each in figures["classes"]] == [ranked] * N_LABELS
    assert ["too many scores" in each for each in figures["warnings"]] == [True] * (ranked is None)
    assert memory.peak < 6 << 20  # 5 bytes a document and label are 7 MiB


def test_labels_that_the_model_does_not_know_count_as_errors(start: Start) -> None:
    gateway, names = start(), [*MODEL.classes, "z", "Ärger"]
    sets: list[list[str]] = [["l0"], ["l1", "z"], [], ["Ärger"], ["l4"]]
    documents = [{"indices": [row], "labels": labels} for row, labels in enumerate(sets)]
    dataset = gateway.upload(documents)["id"]
    publish(gateway.store, model=MODEL, classes=MODEL.classes, label_kind="several", dataset=dataset)
    found = gateway.client.post("/v1/models/news/evaluate", json={"documents": documents}).json()
    truth, given = [[name in own for name in names] for own in sets], np.eye(len(sets), len(names), dtype=bool)
    f1 = [metrics.f1_score(truth, given, average=each, zero_division=0) for each in ("micro", "macro", "samples")]
    assert [found["several"][f"f1_{each}"] for each in ("micro", "macro", "samples")] == pytest.approx(f1)
    assert found["several"]["hamming_loss"] == pytest.approx(metrics.hamming_loss(truth, given))
    assert (found["accuracy"], found["told"]) == (metrics.accuracy_score(truth, given), len(sets))
    assert [each["label"] for each in found["classes"] if not each["known"]] == names[N_LABELS:]
    assert "2 labels of documents are unknown to the model; they count as errors: 'z', 'Ärger'" in found["warnings"]


def test_its_page_has_no_plots(start: Start) -> None:
    gateway = start()
    publish(gateway.store, model=MODEL, classes=MODEL.classes, label_kind="several")
    documents = [{"indices": [place], "labels": [f"l{place}"]} for place in range(3)]
    path, body = "/v1/models/news/evaluate", {"documents": documents}
    page = gateway.client.post(path, json=body, headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "<h2>Label by label</h2>" in page.text
    assert "<svg" not in page.text
    for plot in PLOTS:
        answer = gateway.client.post(path, json=body, params={"plot": plot})
        assert "is for models of one label" in problem_of(answer, 422)["detail"]
