"""The model of certain labels alone is added to the one that learned from votes, too."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.train import Training, TrainingTask, train
from core.validation.calibration import Calibration
from core.validation.confidence import Confidence
from core.weak_supervision import opinion_pool
from tests.core.documents.counts import N, counted
from tests.core.problems import rows_of
from tests.core.weak_supervision.voting import people, votes_of
from tests.there import there

N_CERTAIN = 60


def task_of(n_certain: int = N_CERTAIN, **options: Any) -> TrainingTask:
    """Documents with counts of words, of which the first have certain labels, and all have votes of two people."""
    counts, truth = counted(5)
    labels = np.where(np.arange(N) < n_certain, truth, -1)
    return TrainingTask(
        rows_of(counts), labels, ["c0", "c1"], "auto", options, votes=votes_of(people(truth, [0.85, 0.75], 5), 2)
    )


def alone(task: TrainingTask) -> Training:
    return train(replace(task, votes=None))


def test_the_sum_is_what_is_held_out_and_what_scores_documents() -> None:
    task = task_of()
    training = train(task)
    held_out = there(training.held_out)
    assert held_out.shape == (N_CERTAIN, 1)
    right = (held_out[:, 0] > 0) == task.class_indices[:N_CERTAIN]
    assert there(training.report)["summary"][0].startswith(f"of {N_CERTAIN} labels that were left out, {right.sum()} ")
    # every document is scored by the one model
    np.testing.assert_allclose(training.model.scores(task.rows)[training.unlabeled], training.scores, rtol=1e-9)


def test_models_weigh_by_how_likely_they_make_labels_left_out() -> None:
    """In the total, too: what is surer than it is right weighs less."""
    rng, plain = np.random.default_rng(0), Calibration.plain(1, 2)
    truth = rng.integers(0, 2, N_CERTAIN)
    good, noise = 2.0 * truth[:, None] - 1 + rng.standard_normal((N_CERTAIN, 1)), rng.standard_normal((N_CERTAIN, 1))
    sure = replace(plain, slopes=5 * plain.slopes)
    both, lost, less = (
        opinion_pool._weights([(first, used), (second, used)], np.ones(N_CERTAIN, bool), truth)
        for first, second, used in ((good, good, plain), (good, noise, plain), (good, good, sure))
    )
    assert both[0] == pytest.approx(both[1])
    assert lost[1] < 0.5 * lost[0]
    assert less.sum() < 0.7 * both.sum()


def test_the_sum_is_the_weighted_geometric_mean_of_probabilities() -> None:
    first = alone(task_of())
    second = train(replace(task_of(), votes=None, seed=3, options={"class_fractions": {"c0": 0.6, "c1": 0.4}}))
    truth = task_of().class_indices[:N_CERTAIN].astype(np.intp)
    pooled = opinion_pool.opinion_pool(first, second, truth, np.array([0.2, 0.6]))
    assert there(pooled.report)["certain_labels"]["weight"] == pytest.approx(0.75)
    mean = there(first.probabilities) ** 0.2 * there(second.probabilities) ** 0.6
    np.testing.assert_allclose(there(pooled.probabilities), mean / mean.sum(axis=1, keepdims=True), atol=1e-9)
    assert pooled.passes == first.passes + second.passes


def test_what_is_warned_of_is_the_sum() -> None:
    first, truth = alone(task_of()), task_of().class_indices[:N_CERTAIN].astype(np.intp)
    lost = Confidence(N_CERTAIN, N_CERTAIN // 2, 0.5)
    voted = replace(first, confidence=lost, warnings=["another", lost.sentence()])
    for labels, told in ((truth, 0), (1 - truth, 1)):
        pooled = opinion_pool.opinion_pool(voted, first, labels)
        assert pooled.warnings == ["another", *there(pooled.report)["summary"][:told]]


def test_where_they_cannot_be_added_the_one_with_votes_stands() -> None:
    first = alone(task_of())
    truth = task_of().class_indices[:N_CERTAIN].astype(np.intp)
    few = np.where(np.arange(N_CERTAIN)[:, None] < opinion_pool.FEWEST - 1, there(first.held_out), np.nan)
    uncalibrated = replace(first, model=replace(first.model, calibration=None))
    for other in (replace(first, held_out=few), replace(first, held_out=None), uncalibrated):
        assert opinion_pool.opinion_pool(first, other, truth) is first


def test_labels_by_votes_learn_from_no_other_documents() -> None:
    """Who voted chose the documents; what other documents are is said by the certain labels alone."""
    task = replace(task_of(), votes=votes_of(people(counted(5)[1], [0.85, 0.75], 5, coverage=0.3), 2))
    report, of_labels = there(train(task).report), there(alone(task).report)
    assert [each["algorithm"] for each in report["tried"]] == ["svm"]
    assert report["estimate"] == of_labels["estimate"]
    assert report["chosen"]["why"].startswith("labels by votes are no random sample")


@pytest.mark.parametrize("task", [task_of(opinion_pool.FEWEST - 1), task_of(seconds=60.0)], ids=["few", "in time"])
def test_few_labels_and_a_budget_of_seconds_leave_no_second_training(task: TrainingTask) -> None:
    assert "certain_labels" not in there(train(task).report)
