"""The learning curves' choices and page."""

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import learning
from benchmarks.base import commit
from benchmarks.learning import AUTO_CHOSEN, CURVES, POINTS, STRATEGIES, SVM, Curve, Split, chosen, key, page, run
from benchmarks.panel.sets import Documents
from core.train import TrainingTask, train


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Split]:
    """Three classes of 240 documents, of which half are the pool."""
    rng = np.random.default_rng(0)
    class_indices = rng.choice(3, 240, p=[0.6, 0.3, 0.1]).astype(np.int32)
    dense = rng.standard_normal((240, 20)) + 2.0 * np.eye(3, 20)[class_indices]
    monkeypatch.setattr(learning, "documents", lambda name: Documents(sp.csr_matrix(dense), class_indices, [0, 1, 2]))
    learning.split.cache_clear()
    yield learning.split("made", 0)
    learning.split.cache_clear()


def test_a_run_begins_with_as_many_of_each_class_and_judges_by_others(data: Split) -> None:
    assert sorted(data.class_indices[data.first].tolist()) == [0, 0, 1, 1, 2, 2]
    assert (data.rows.n_rows, data.test_rows.n_rows) == (120, 120)
    again = learning.split.__wrapped__("made", 0)
    np.testing.assert_array_equal(data.first, again.first)
    assert not np.array_equal(data.class_indices, learning.split.__wrapped__("made", 1).class_indices)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n", [1, 10, 40])
def test_what_is_chosen_is_unlabeled_and_chosen_once(data: Split, strategy: str, n: int) -> None:
    class_indices = np.full(120, -1, np.int32)
    class_indices[data.first] = data.class_indices[data.first]
    unlabeled = np.flatnonzero(class_indices < 0)
    model = train(TrainingTask(data.rows, class_indices, [0, 1, 2], "svm", {})).model
    found = chosen(strategy, model, data.rows, unlabeled, n, np.random.default_rng(0))
    assert len(np.unique(found)) == n
    assert np.isin(found, unlabeled).all()
    if strategy == "uncertain":
        scores = np.sort(model.scores(data.rows), axis=1)
        margins = scores[:, -1] - scores[:, -2]
        assert margins[found].max() <= np.delete(margins, np.concatenate([found, data.first])).min()


def test_curves_fall_and_know_what_they_measure(data: Split) -> None:
    curve = run("made", SVM, "random", 0)
    assert [len(values) for values in (curve.errors, curve.variations, curve.calibrations)] == [len(POINTS)] * 3
    assert curve.code == commit()
    assert curve.errors[-1] < curve.errors[0]
    assert set(curve.variations) == {None}
    told = run("made", AUTO_CHOSEN, "diverse", 0)
    assert all(value is not None and 0 <= value <= 1 for value in (*told.variations, *told.calibrations))


def test_the_page_tells_who_is_better_than_random(data: Split) -> None:
    """Every strategy as far from random labels as it was made, and in as many seeds."""
    known = {}
    for learner, strategy in CURVES:
        for seed in range(2):
            off = 0.0 if strategy == "random" else 0.05 if strategy == "uncertain" else -0.03
            known[key("made", learner, strategy, seed)] = Curve([0.2 + off] * len(POINTS), [0.1] * len(POINTS), [0.1] * len(POINTS))
    known[key("made", SVM, "random", 0)] = known[key("made", SVM, "random", 0)]._replace(code="0d169f5")
    assert "1 of svm at 0d169f5; 5 of svm at a commit that was not kept." in page(known, ["made"])
    lines = [line for line in page(known, ["made"]).splitlines() if "of 2)" in line]
    assert all(("+0.050 (0 of 2)" if "uncertain" in line else "-0.030 (2 of 2)") in line for line in lines)
    assert len(lines) == len(CURVES) - 2
