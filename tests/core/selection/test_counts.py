"""Counts of words are learned from as the texts are that they were counted in, also where very many are rare."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from core.documents.label_sets import LabelSets
from core.documents.rows import SparseRows
from core.models.io import read_model
from core.models.model import LinearModel
from core.train import Training, TrainingTask, train
from tests.core.documents.counts import TERMS, N, counted
from tests.core.problems import rows_of
from tests.there import there


def trained(matrix: Any, truth: NDArray[np.int64], algorithm: str = "auto") -> Training:
    labels = np.where(np.arange(N) < 20, truth, -1)
    return train(TrainingTask(rows_of(matrix), labels, ["a", "b"], algorithm, {}))


def test_counts_are_learned_from_as_terms_of_text() -> None:
    counts, truth = counted(0)
    by_counts, by_weights = (
        trained(counts, truth),
        trained(TfidfTransformer(sublinear_tf=True).fit_transform(counts), truth),
    )
    np.testing.assert_allclose(by_counts.scores, by_weights.scores, atol=1e-3)
    assert there(by_counts.report)["features"].startswith("counts weighed by TF-IDF")
    assert not there(by_weights.report)["features"].startswith("counts")
    taken = trained(counts, truth, "svm")
    assert isinstance(taken.model, LinearModel)
    assert taken.model.terms is None  # a method that is named takes values as they are


@pytest.mark.parametrize("terms", [TERMS, TERMS // 8])
def test_the_model_takes_counts(terms: int) -> None:
    counts, truth = counted(1, terms)
    training = trained(counts, truth)
    stored = read_model(*training.model.to_arrays())
    rows = rows_of(counts)
    scores = stored.scores(rows)
    np.testing.assert_allclose(scores[training.unlabeled], training.scores, rtol=1e-9, atol=1e-12)
    assert stored.facts()["values"] == "counts weighed by TF-IDF, each document at length 1"
    contributions = stored.contributions(rows.between(7, 8), 0)
    assert contributions.intercept + contributions.amounts.sum() == pytest.approx(scores[7, 0])
    renumbered = stored.renumbered(np.arange(terms)[::-1])
    mirrored = rows_of(counts[:, ::-1])
    np.testing.assert_allclose(renumbered.scores(mirrored), scores, rtol=1e-6, atol=1e-7)


def test_counts_with_several_labels_are_weighed_too() -> None:
    counts, truth = counted(2)
    labels = [[each] if k < 30 else None for k, each in enumerate(truth.tolist())]
    sets = LabelSets.of(labels, [None] * N, ["a", "b"])
    task = TrainingTask(rows_of(counts), np.full(N, -1), [], "auto", {}, label_sets=sets)
    training = train(task)
    assert isinstance(training.model, LinearModel)
    assert there(training.model.terms).counts
    scores = training.model.scores(rows_of(counts))[training.unlabeled]
    np.testing.assert_allclose(scores, training.scores, rtol=1e-6, atol=1e-9)


def test_clusters_of_counts_are_those_of_terms() -> None:
    counts, _ = counted(3)
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    found = [
        train(TrainingTask(rows_of(each), np.full(N, -1), [], "clusters", {"n_clusters": 2}))
        for each in (counts, weights)
    ]
    likely = [there(each.probabilities)[:, 0] for each in found]
    np.testing.assert_allclose(likely[0], likely[1], atol=1e-3)
    assert np.ptp(likely[0]) > 0.5


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
