"""Trainings on labels of one class, of drawn scores and documents with known shares."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidDocuments, InvalidOption
from core.problem import Status
from core.registry import with_rest
from core.train import Training, TrainingContext, TrainingTask, train
from core.weak_supervision.one_class import share_above
from tests.core.selection.pools import Pool, pool
from tests.core.watcher import Watcher
from tests.core.weak_supervision.voting import votes_of
from tests.there import there


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_the_share_of_drawn_scores_is_found(share: float) -> None:
    """Normal scores, the means of which are three deviations apart."""
    off, held = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = share_above(rng.normal(3.0, 1.0, 100), rng.normal(3.0 * (rng.random(3000) < share), 1.0))
        off.append(found.share - share)
        held += found.low <= share <= found.high
    assert np.abs(off).mean() < 0.05
    assert held >= 19


@pytest.mark.parametrize("n_labels", [20, 50])
def test_the_interval_holds_where_classes_overlap(n_labels: int) -> None:
    held, below = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = share_above(rng.normal(1.2, 1.0, n_labels), rng.normal(1.2 * (rng.random(1500) < 0.25), 1.0))
        held += found.low <= 0.25 <= found.high
        below += found.low > 0.05
    assert held >= 54
    assert below >= 10


def test_the_best_threshold_is_that_of_a_plain_search(rng: np.random.Generator) -> None:
    positive, unlabeled = rng.normal(1.0, 1.0, 30), rng.normal(0.2, 1.0, 400)
    found = share_above(positive, unlabeled)
    above, passed = (np.mean(each >= positive[:, None], axis=1) for each in (unlabeled, positive))
    bounds = (above + 0.8275735551899077 * (30**-0.5 + 400**-0.5)) / passed
    assert found.share == pytest.approx((above / passed)[np.argmin(bounds)])
    assert found.low < found.share < found.high


def one_class(data: Pool, n_labels: int = 40, options: dict[str, Any] | None = None, **context: Any) -> Training:
    labels = np.full(len(data.truth), -1)
    labels[np.flatnonzero(data.truth == 1)[:n_labels]] = 0
    task = TrainingTask(data.rows, labels, ["found"], "auto", options or {}, other="rest")
    return train(task, TrainingContext(threads=1, **context))


def wrong(training: Training, data: Pool) -> float:
    answer = training.model.labels_of(training.scores, training.probabilities)
    return float(np.mean((answer == 0) != (data.truth[training.unlabeled] == 1)))


@pytest.mark.parametrize("fractions", [[0.85, 0.15], [0.5, 0.5]])
def test_documents_of_the_class_are_found_without_another(fractions: list[float]) -> None:
    data = pool(0, fractions, gap=3.0, n=1200)
    training = one_class(data)
    report = there(training.report)
    assert report["share"]["share"] == pytest.approx(data.truth[training.unlabeled].mean(), abs=0.07)
    assert list(training.model.classes) == ["found", "rest"]
    assert wrong(training, data) < 0.08
    fresh = pool(9, fractions, gap=3.0, n=600)
    answer = training.model.labels_of(training.model.scores(fresh.rows))
    assert np.mean((answer == 0) != (fresh.truth == 1)) < 0.08
    assert (training.held_out, "confidence" in report) == (None, False)
    assert report["summary"][0].startswith(
        f"about {100 * report['share']['share']:.0f} of 100 documents without a label"
    )


def test_a_share_that_is_told_stands() -> None:
    data = pool(0, [0.8, 0.2], gap=2.0, n=600)
    training = one_class(data, options={"class_fractions": {"found": 0.35}})
    answer = training.model.labels_of(training.scores, training.probabilities)
    assert (np.mean(answer == 0), there(training.report)["summary"]) == (pytest.approx(0.35, abs=0.01), [])


@pytest.mark.usefixtures("every_report")
def test_a_stop_ends_it() -> None:
    watcher = Watcher(over=lambda point: point.fraction > 0.35)
    training = one_class(pool(0, [0.8, 0.2], n=300), observer=watcher)
    assert training.status is Status.CANCELLED


def test_too_few_labels_are_refused() -> None:
    with pytest.raises(InvalidDocuments, match="'found' is the only class, and 2 of its documents have a label"):
        one_class(pool(0, [0.8, 0.2], n=100), n_labels=2)


@pytest.mark.parametrize(
    ("algorithm", "classes", "other", "n_unlabeled", "found"),
    [
        ("auto", ["spam"], None, 5, ["other", "spam"]),
        ("auto", ["ham"], "rest", 5, ["ham", "rest"]),
        ("auto", [1], None, 5, [0, 1]),
        ("auto", [0], None, 5, [0, 1]),
        ("auto", ["a", "b"], None, 5, ["a", "b"]),
        ("svm", ["a"], None, 5, ["a"]),
        ("auto", ["a"], None, 0, ["a"]),
    ],
)
def test_the_rest_is_a_class(
    algorithm: str, classes: list[str | int], other: str | None, n_unlabeled: int, found: list[str | int]
) -> None:
    assert with_rest(algorithm, classes, other, 3, n_unlabeled) == found


@pytest.mark.parametrize(
    ("algorithm", "classes", "other", "detail"),
    [
        ("auto", ["spam"], "spam", "'spam' is the class that is labeled"),
        ("auto", [1], "rest", "an integer where they are integers"),
        ("auto", ["a", "b"], "rest", "it needs the algorithm auto, labels of one class"),
        ("svm", ["a"], "rest", "it needs the algorithm auto, labels of one class"),
    ],
)
def test_a_name_that_cannot_be_is_refused(algorithm: str, classes: list[str | int], other: str, detail: str) -> None:
    with pytest.raises(InvalidOption, match=detail) as caught:
        with_rest(algorithm, classes, other, 3, 5)
    assert caught.value.field == "other"


def test_votes_for_the_class_are_heard_beside_its_labels(rng: np.random.Generator) -> None:
    data = pool(0, [0.85, 0.15], gap=2.0, n=1200)
    labels, answers = np.full(1200, -1), np.full((1200, 2), -1)
    labels[np.flatnonzero(data.truth == 1)[:40]] = 0
    for voter, right in enumerate((0.95, 0.2)):
        hits, misses = (rng.choice(np.flatnonzero(data.truth == each), 90, replace=False) for each in (1, 0))
        n_hits = round(right * 90)
        answers[np.concatenate([hits[:n_hits], misses[n_hits:]]), voter] = 0
    alone = one_class(data)
    votes = replace(votes_of(answers, 1), classes=["found"])
    training = train(TrainingTask(data.rows, labels, ["found"], "auto", {}, other="rest", votes=votes))
    report = there(training.report)
    assert report["share"] == there(alone.report)["share"]
    good, bad = report["voters"]["voter-0"], report["voters"]["voter-1"]
    assert good["right"] > 0.6 > bad["high"] > 0.2 > bad["low"]
    assert wrong(training, data) < wrong(alone, data)
    unvoted = (answers[training.unlabeled] < 0).all(axis=1)
    np.testing.assert_allclose(there(training.probabilities)[unvoted], there(alone.probabilities)[unvoted], 1e-12)
