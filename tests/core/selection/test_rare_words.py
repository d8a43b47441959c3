"""Texts with very many rare words, whose labels transductive solutions contradict."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from core.documents.rows import SparseRows
from core.train import TrainingTask, train
from tests.core.problems import rows_of
from tests.there import there


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
