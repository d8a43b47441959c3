"""``auto`` on documents of which some lack a vector."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.models.parted import PartedModel
from core.problem import Status
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import dense_of, rows_of
from tests.core.watcher import Watcher
from tests.there import there

N, TERMS, WIDTH = 600, 200, 8
PARTS = {"text": slice(0, TERMS), "vector.e5": slice(TERMS, TERMS + WIDTH)}


class Pool(NamedTuple):
    rows: SparseRows
    truth: NDArray[np.int64]
    known: NDArray[np.int64]
    held: NDArray[np.bool_]
    """documents that have a vector: all labeled ones and some others"""

    def task(self, options: dict[str, Any] | None = None) -> TrainingTask:
        return TrainingTask(self.rows, self.known, [0, 1], "auto", options or {}, parts=PARTS)

    @property
    def unread(self) -> NDArray[np.bool_]:
        return ~self.held[self.known < 0]

    def errors(self, training: Training) -> NDArray[np.bool_]:
        given = there(training.probabilities).argmax(axis=1)
        return np.asarray(given != self.truth[training.unlabeled])


@cache
def pool(share: float = 0.2, positive: float = 0.25) -> Pool:
    """Texts of terms that tell something, and vectors that tell nearly all."""
    rng = np.random.default_rng(5)
    truth = (rng.random(N) < positive).astype(np.int64)
    likely = np.where(np.arange(TERMS) % 2 == truth[:, None], 0.06, 0.025)
    terms = (rng.random((N, TERMS)) < likely).astype(float)
    terms[:, 0] = 1.0  # no text is empty
    terms *= np.linspace(1.0, 1.01, TERMS)  # no counts, which are weighed where documents have one part
    terms /= np.linalg.norm(terms, axis=1, keepdims=True)
    vectors = rng.normal(size=(N, WIDTH)) + 1.6 * np.eye(WIDTH)[truth]
    known = np.full(N, -1)
    for label in (0, 1):
        known[np.flatnonzero(truth == label)[:10]] = label
    held = (known >= 0) | (rng.random(N) < share)
    vectors[~held] = 0.0
    return Pool(rows_of(np.hstack([terms, vectors / 4])), truth, known, held)


@cache
def trained(share: float = 0.2) -> Training:
    return train(pool(share).task(), TrainingContext(threads=1))


def test_documents_without_a_vector_are_answered_as_by_their_text_alone() -> None:
    data = pool()
    training = trained()
    text = rows_of(dense_of(data.rows)[:, :TERMS])
    alone = train(TrainingTask(text, data.known, [0, 1], "auto", {}), TrainingContext(threads=1))
    np.testing.assert_allclose(
        there(training.probabilities)[data.unread], there(alone.probabilities)[data.unread], atol=1e-6
    )
    wrong = data.errors(training)
    assert wrong[~data.unread].mean() < data.errors(alone)[~data.unread].mean() - 0.05


def test_the_model_scores_the_pool_as_the_training_did() -> None:
    data, training = pool(), trained()
    assert isinstance(training.model, PartedModel)
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores)
    np.testing.assert_array_equal(training.unlabeled, np.flatnonzero(data.known < 0))
    assert there(training.held_out).shape == (20, 1)
    assert np.isfinite(there(training.held_out)).all()


def test_what_it_reports() -> None:
    data, report = pool(), there(trained().report)
    assert report["class_fractions"]["1"] == pytest.approx(data.truth.mean(), abs=0.1)
    found = report["incomplete"]
    assert (found["documents"], found["lack"]) == (np.count_nonzero(~data.held), ["vector.e5"])
    assert 0 < found["weight"] < 1
    assert list(report["parts"]) == ["text", "vector.e5", "together"]


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_from_few_documents_with_a_vector_no_fractions_are_learned(share: float) -> None:
    """Their model learns from the labeled ones alone."""
    report = there(trained(share).report)
    assert {*report["chosen"]["weights"]} <= {f"{part}/svm" for part in ("text", "vector.e5", "together")}
    assert report["class_fractions"]["1"] == pytest.approx(pool(share).truth.mean(), abs=0.1)
    assert not [warning for warning in trained(share).warnings if "no unlabeled documents" in warning]


def test_where_all_have_a_vector_or_labeled_ones_lack_it_or_one_class_weighs_nothing_there_is_one_model() -> None:
    data = pool(1.0)
    assert not isinstance(trained(1.0).model, PartedModel)
    values = dense_of(data.rows)
    values[np.flatnonzero(data.known >= 0)[0], TERMS:] = 0.0
    for task in (
        replace(data.task(), rows=rows_of(values)),
        replace(pool().task(), weights=(data.known != 1).astype(float)),
    ):
        assert not isinstance(train(task, TrainingContext(threads=1)).model, PartedModel)


def test_progress_is_that_of_both() -> None:
    watcher = Watcher()
    training = train(pool().task(), TrainingContext(watcher, threads=1))
    assert watcher.fractions == sorted(watcher.fractions)
    assert watcher.fractions[-1] == 1.0
    assert {"", "vector.e5", "together"} <= {point.phase.part for point in training.trace}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_any_stop_ends_both(share: float) -> None:
    watcher = Watcher(over=lambda point: point.fraction >= share)
    stopped = train(pool().task(), TrainingContext(watcher, threads=1))
    assert stopped.status is Status.CANCELLED
    assert len(stopped.unlabeled) == len(stopped.scores) == N - 20


@pytest.mark.usefixtures("every_report")
def test_seconds_bound_both() -> None:
    training = train(pool().task({"seconds": 1e-3}), TrainingContext(threads=1))
    assert there(training.report)["time"]["seconds"] == 1e-3
    assert there(training.report)["incomplete"]["documents"] > 0
    assert [each.split()[0] for each in training.warnings if "seconds were over" in each] == ["0.001"]


def test_names_in_messages_are_those_of_the_documents() -> None:
    """A value out of range is told by the position of its document in the task."""
    data = pool()
    values = dense_of(data.rows)
    place = int(np.flatnonzero(data.held & (data.known < 0))[-1])
    values[place, TERMS + 1] = 1e6
    fault = train(
        TrainingTask(rows_of(values), data.known, [0, 1], "auto", {}, parts=PARTS), TrainingContext(threads=1)
    ).largest()
    assert there(fault).document == str(place)


def test_texts_without_any_term_leave_the_vectors() -> None:
    """Of all documents, or of those that have a vector."""
    data = pool()
    for rows in (np.ones(N, bool), data.held):
        values = dense_of(data.rows)
        values[np.ix_(rows, np.arange(TERMS))] = 0.0
        training = train(replace(data.task(), rows=rows_of(values)), TrainingContext(threads=1))
        assert data.errors(training)[~data.unread].mean() < 0.2
