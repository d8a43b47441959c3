"""Clusters of drawn clouds and of made-up texts."""

from typing import Any

import numpy as np
import pytest

from core.errors import InvalidDocuments, InvalidOption, MessageNames
from core.problem import Status
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import rows_of
from tests.core.selection.pools import Pool, pool
from tests.core.watcher import Watcher
from tests.there import there


def clusters(data: Pool, n_clusters: int, **context: Any) -> Training:
    unlabeled = np.full(len(data.truth), -1)
    names = MessageNames(lambda row: f"d{row}", lambda column: f"f{column}")
    task = TrainingTask(data.rows, unlabeled, [], "clusters", {"n_clusters": n_clusters}, names=names)
    return train(task, TrainingContext(threads=1, **context))


def test_clouds_are_found_and_described() -> None:
    data = pool(0, [0.5, 0.3, 0.2], gap=6.0, n=300)
    training = clusters(data, 3)
    found = training.model.labels_of(training.scores, training.probabilities)
    assert training.status is Status.CONVERGED
    assert training.unlabeled.tolist() == list(range(300))
    assert np.mean(found == data.truth) > 0.97, "the largest cluster comes first"
    described = there(training.report)["clusters"]
    assert [each["label"] for each in described] == list(training.model.classes) == [0, 1, 2]
    assert [each["size"] for each in described] == np.bincount(found).tolist()
    assert [each["terms"][0] for each in described] == ["f0", "f1", "f2"]
    assert all(each["name"].startswith(each["terms"][0]) for each in described)
    assert all(found[int(name[1:])] == each["label"] for each in described for name in each["documents"])
    assert (training.held_out, training.confidence) == (None, None)
    assert training.warnings == []
    fewer = clusters(pool(2, [0.5, 0.3, 0.2], gap=2.0, n=300), 5)
    assert fewer.warnings == ["of 5 clusters only 4 have a document in the end: ask for 4 or fewer"]
    near = there(fewer.report)
    sizes = [each["size"] for each in near["clusters"]]
    assert (sizes, sizes[-1], near["summary"][0][:24]) == (sorted(sizes, reverse=True), 0, "4 clusters, the largest:")
    fresh = pool(9, [0.5, 0.3, 0.2], gap=6.0, n=200)
    assert np.mean(training.model.labels_of(training.model.scores(fresh.rows)) == fresh.truth) > 0.97


def test_labels_make_no_difference() -> None:
    data = pool(1, [0.6, 0.4], gap=4.0, n=200)
    bare = clusters(data, 2)
    labeled = train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "clusters", {"n_clusters": 2}))
    np.testing.assert_array_equal(labeled.scores, bare.scores)


def test_documents_that_are_alike_make_fewer_clusters_or_none() -> None:
    rows = np.repeat(np.eye(3, 5), 10, axis=0)
    training = clusters(Pool(rows_of(rows), np.zeros(0, np.int32), np.zeros(30, np.int64)), 5)
    assert training.warnings == ["the documents are too much alike for 5 clusters: there are 3"]
    assert list(training.model.classes) == [0, 1, 2]
    with pytest.raises(InvalidDocuments, match="all alike"):
        clusters(Pool(rows_of(rows[:10]), np.zeros(0, np.int32), np.zeros(10, np.int64)), 2)


def test_more_clusters_than_documents_are_refused() -> None:
    with pytest.raises(InvalidOption, match="n_clusters: must be at most 4, the number of documents"):
        clusters(Pool(rows_of(np.eye(4)), np.zeros(0, np.int32), np.zeros(4, np.int64)), 5)


@pytest.mark.usefixtures("every_report")
def test_it_stops_wherever_it_is_asked_to() -> None:
    data, everything = pool(2, [0.5, 0.5], gap=3.0, n=120), Watcher()
    clusters(data, 2, observer=everything)
    for stop_at in (1, len(everything.points) // 2, len(everything.points) - 1):
        training = clusters(data, 2, observer=Watcher(stop_at))
        assert training.status is Status.CANCELLED
        assert training.scores.shape[0] == 120
