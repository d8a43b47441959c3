"""Counts of words are learned from as the texts are that they were counted in, and the model takes counts."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from core.documents.label_sets import LabelSets
from core.documents.rows import SparseRows
from core.models.io import read_model
from core.models.model import LinearModel
from core.train import Training, TrainingTask, train
from tests.there import there

N, TERMS = 300, 1200


def counted(seed: int, terms: int = TERMS) -> tuple[Any, NDArray[np.int64]]:
    """Counts of the terms of documents of very unlike lengths, and their classes: a tenth of the terms tells them
    apart.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, N)
    shares = rng.dirichlet(np.full(terms, 0.3))
    shares = np.stack([shares, shares])
    for label in (0, 1):
        shares[label, label * terms // 10 : (label + 1) * terms // 10] *= 3
    shares /= shares.sum(axis=1, keepdims=True)
    lengths = rng.geometric(1 / 60, N) + 5
    return sparse.csr_matrix([rng.multinomial(*each) for each in zip(lengths, shares[truth], strict=True)]), truth


def rows_of(matrix: Any) -> SparseRows:
    found = matrix.tocsr().astype(np.float32)
    return SparseRows(found.indptr.astype(np.int64), found.indices.astype(np.uint32), found.data, found.shape[1])


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
