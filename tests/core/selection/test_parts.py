"""``auto`` of documents of several parts: the sum of the models of each part and of all."""

import numpy as np
import pytest

from core.documents.rows import SparseRows
from core.engine.runner import Scheduler
from core.models.model import LinearModel
from core.options.auto import AutoOptions
from core.problem import Status
from core.progress import TOGETHER, Watch
from core.selection.candidates import Selecting, blocks_of
from core.selection.data import SelectionData
from core.train import TrainingContext, TrainingTask, train
from tests.core.problems import rows_of
from tests.core.selection.pools import PARTS, WIDTH, N, blocks, trained
from tests.core.watcher import Watcher
from tests.there import there


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_is_the_sum_that_scores_the_documents(n_classes: int) -> None:
    training = trained(n_classes=n_classes)
    rows, classes = blocks(0, (4.0, 4.0), n_classes)
    assert isinstance(training.model, LinearModel)
    np.testing.assert_allclose(training.model.scores(rows)[30:], training.scores, atol=1e-5)
    given = training.model.labels_of(training.scores, training.probabilities)
    assert np.mean(given == classes[30:]) > 0.9
    assert training.report is not None
    parts = training.report["parts"]
    assert list(parts) == ["one", "two", "together"]
    assert sum(part["weight"] for part in parts.values()) == pytest.approx(1.0)
    assert sum(training.report["chosen"]["weights"].values()) == pytest.approx(1.0)
    assert "the transductive SVM on all parts side by side" in training.report["chosen"]["why"]


def test_a_part_that_knows_nothing_counts_little() -> None:
    report = there(trained((0.0, 5.0)).report)
    weights = {name: part["weight"] for name, part in report["parts"].items()}
    assert 4 * weights["one"] < min(weights["two"], weights["together"])


def test_documents_that_lack_a_part_say_nothing_of_the_classes_by_it() -> None:
    """All labeled documents have the second part, and few others: to what it knows, these are all of one class."""
    generator = np.random.default_rng(3)
    classes = (generator.random(400) < 0.2).astype(np.int64)
    known = np.full(400, -1)
    for label in (0, 1):
        known[np.flatnonzero(classes == label)[:8]] = label
    values = generator.normal(size=(400, 2 * WIDTH))
    values[:, :2] += 4.0 * np.eye(2)[classes]
    values[:, WIDTH : WIDTH + 2] += np.eye(2)[classes]
    values[(known < 0) & (generator.random(400) < 0.95), WIDTH:] = 0.0
    rows = rows_of(values)
    report = there(train(TrainingTask(rows, known, [0, 1], "auto", {}, parts=PARTS), TrainingContext(threads=1)).report)
    assert report["parts"]["together"]["weight"] > 0.1
    assert report["class_fractions"]["1"] == pytest.approx(classes.mean(), abs=0.1)


def test_a_block_is_complete_as_far_as_documents_have_all_its_parts() -> None:
    """Of four unlabeled documents one has both parts, two the first alone, and one the second alone."""
    values = np.ones((6, 2 * WIDTH))
    values[3:5, WIDTH:], values[5, :WIDTH] = 0.0, 0.0
    labels, classes = np.array([0, 1]), [0, 1]

    def data_of(rows: SparseRows, centred: bool) -> SelectionData:
        return SelectionData.of(rows, labels, classes, 0, centred=centred)

    parts = {name: np.arange(part.start, part.stop) for name, part in PARTS.items()}
    blocks = blocks_of(
        Selecting(rows_of(values), labels, classes, AutoOptions(), None, data_of, Scheduler, Watch(None), parts)
    )
    assert {block.name: block.complete for block in blocks} == {"one": 0.75, "two": 0.5, TOGETHER: 0.25}


def test_naive_bayes_of_numbers_learns_from_each_part() -> None:
    report = there(trained().report)
    tried = {(each["algorithm"], each["part"]) for each in report["tried"]}
    assert {("naive_bayes", name) for name in ("one", "two", "together")} <= tried
    assert not {"label_spreading", "kernel_ridge"} & {algorithm for algorithm, _ in tried}


def test_a_part_without_any_value_leaves_the_plain_selection() -> None:
    rows, classes = blocks(0, (4.0, 4.0))
    known = np.where(np.arange(N) < 30, classes, -1)
    parts = {"all": slice(0, 2 * WIDTH), "none": slice(2 * WIDTH, 2 * WIDTH + 3)}
    task = TrainingTask(rows._replace(n_features=2 * WIDTH + 3), known, [0, 1], "auto", {}, parts=parts)
    report = there(train(task, TrainingContext(threads=1)).report)
    assert "parts" not in report


def test_a_part_without_any_value_leaves_the_plain_estimate() -> None:
    """Documents of one part are centred before their class fractions are estimated."""
    rows, classes = blocks(0, (4.0, 4.0))
    known = np.where(np.arange(N) < 30, classes, -1)
    reports = []
    for parts in ({}, {"all": slice(0, 2 * WIDTH), "none": slice(2 * WIDTH, 2 * WIDTH + 3)}):
        task = TrainingTask(rows._replace(n_features=2 * WIDTH + 3), known, [0, 1], "tsvm", {}, parts=parts)
        reports.append(train(task, TrainingContext(threads=1)).report)
    assert reports[0] == reports[1]


def test_without_unlabeled_documents_all_are_supervised() -> None:
    training = trained(labeled=N)
    assert {*there(training.report)["chosen"]["weights"]} <= {"one/svm", "two/svm", "together/svm"}
    assert training.model.calibration is not None


def test_labels_that_cannot_be_left_out_weigh_evenly() -> None:
    rows, classes = blocks(0, (4.0, 4.0))
    known = np.full(N, -1)
    for label in (0, 1):
        known[np.flatnonzero(classes == label)[0]] = label
    report = there(train(TrainingTask(rows, known, [0, 1], "auto", {}, parts=PARTS), TrainingContext(threads=1)).report)
    assert [part["weight"] for part in report["parts"].values()] == [pytest.approx(1 / 3)] * 3
    assert "too few labels" in report["chosen"]["why"]


def test_progress_goes_through_the_parts_and_a_stop_ends_them() -> None:
    watcher = Watcher()
    training = trained(context=TrainingContext(watcher, threads=1))
    assert watcher.fractions == sorted(watcher.fractions)
    assert watcher.fractions[-1] == 1.0
    assert all(0 <= point.fraction <= 1 for point in training.trace)
    assert {point.phase.part for point in training.trace} == {"one", "two", "together"}
    stopped = trained(context=TrainingContext(lambda point: True, threads=1))
    assert stopped.status is Status.CANCELLED
