"""Solutions along a grid of fractions, and the thresholds by which these are obeyed."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from core.documents.rows import SparseRows
from core.engine.requests import Barrier, Phase, Steps
from core.engine.runner import Scheduler
from core.options.linear import TsvmOptions
from core.problem import Problem
from core.selection.fraction_path import FractionPath, coefficients_of, nearest_threshold
from core.train import TrainingTask, train
from tests.core.problems import rows_of
from tests.there import there

SCORES = st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=30, unique=True)


@given(SCORES, st.floats(0, 1))
def test_of_the_thresholds_with_so_many_scores_above_the_nearest_to_zero_is_taken(
    scores: list[float], fraction: float
) -> None:
    threshold, ordered = nearest_threshold(np.array(scores), fraction), sorted(scores, reverse=True)
    count = round(fraction * len(scores))
    least, most = ordered[count] if count < len(scores) else -np.inf, ordered[count - 1] if count else np.inf
    assert least <= threshold <= most
    assert threshold == (0.0 if least <= 0 <= most else least if least > 0 else most)


def test_only_the_path_with_all_labels_keeps_a_solution() -> None:
    """There are as many paths as classes times folds, and a number a feature in each solution."""
    problem = Problem.of(rows_of(np.random.default_rng(0).standard_normal((40, 6))), np.array([1.0, -1.0, 1.0, -1.0]))
    hidden = np.array([[False] * 4, [True, True, False, False]])
    with Scheduler(problem.rows) as scheduler:
        steps: dict[Phase, Callable[[], Steps]] = {
            Phase(fold=place): partial(
                FractionPath(np.array([0.3, 0.5])).steps, problem, each, TsvmOptions(), Barrier(1, list)
            )
            for place, each in enumerate(hidden)
        }
        kept = [coefficients_of(result) for result in scheduler.run(steps)]
    assert [len(each) for each in kept] == [7, 1]
    assert kept[0].any()


def texts(n: int, seed: int) -> tuple[SparseRows, np.ndarray]:
    """Bags of 150 words by Zipf's law in four topics, of the rarer words a third the topic's own, as rows of norm 1."""
    rng = np.random.default_rng(seed)
    cumulated = np.cumsum(1 / (np.arange(1, 60_001) + 2.7) ** 1.05)
    topics = rng.integers(0, 4, n)
    words = np.searchsorted(cumulated, rng.random((n, 150)) * cumulated[-1])
    own = (words > 100) & (rng.random(words.shape) < 1 / 3)
    words = np.where(own, words + (topics[:, None] - words) % 4, words)
    counts = csr_array((np.ones(words.size), (np.repeat(np.arange(n), 150), words.ravel())))
    counts.sum_duplicates()
    found = np.bincount(counts.indices, minlength=counts.shape[1])
    counts.data = (1 + np.log(counts.data)) * np.log(n / np.maximum(found, 1))[counts.indices]
    counts.data /= np.repeat(np.sqrt(counts.multiply(counts).sum(axis=1)), np.diff(counts.indptr))
    return rows_of(counts), topics


@pytest.mark.parametrize("seed", [2, 6])
def test_solutions_that_contradict_their_labels_do_not_mislead_the_count(seed: int) -> None:
    """Among very many rare words a solution has labels for a quarter of the documents, and scores above 0 for a
    tenth."""
    rows, topics = texts(4000, seed)
    known = np.full(len(topics), -1, np.int32)
    for topic in range(4):
        known[np.flatnonzero(topics == topic)[:20]] = topic
    training = train(TrainingTask(rows, known, list("abcd"), "tsvm", {}, seed=seed))
    truth = np.bincount(topics[known < 0], minlength=4) / np.count_nonzero(known < 0)
    assert np.abs(np.array(list(there(training.report)["class_fractions"].values())) - truth).sum() / 2 < 0.06
