"""The learning curves' runs and page."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import learning
from benchmarks.learning import AUTO, EACH, FIRST, LEARNERS, MEASURES, ROUNDS, SVM, Learner, Split, page, run
from benchmarks.panel.results import Results
from benchmarks.panel.sets import Documents
from tests.calls import noted


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Split]:
    """Three classes of 640 documents, half of them the pool."""
    rng = np.random.default_rng(0)
    class_indices = rng.choice(3, 640, p=[0.6, 0.3, 0.1]).astype(np.int32)
    dense = rng.standard_normal((640, 20)) + 2.0 * np.eye(3, 20)[class_indices]
    monkeypatch.setattr(learning, "documents", lambda name: Documents(sp.csr_matrix(dense), class_indices, [0, 1, 2]))
    learning.split.cache_clear()
    yield learning.split("made", 0)
    learning.split.cache_clear()


def test_a_run_begins_with_as_many_of_each_class_and_judges_by_others(data: Split) -> None:
    assert np.bincount(data.class_indices[data.first]).tolist() == [FIRST] * 3
    assert (data.rows.n_rows, data.test_rows.n_rows) == (320, 320)
    again = learning.split.__wrapped__("made", 0)
    np.testing.assert_array_equal(data.first, again.first)
    assert not np.array_equal(data.class_indices, learning.split.__wrapped__("made", 1).class_indices)


@pytest.mark.parametrize(("learner", "rounds"), [(SVM, ROUNDS), (Learner("auto", "diverse"), 2)])
def test_each_round_labels_others_and_errors_fall(
    data: Split, learner: Learner, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = noted(monkeypatch, learning, "_trained", lambda data, learner, labels, seed: labels)
    monkeypatch.setattr(learning, "ROUNDS", rounds)
    curve = run("made", learner, 0)
    assert [len(curve[measure]) for measure in MEASURES] == [1 + rounds] * len(MEASURES)
    assert [len(np.unique(labels.positions)) for labels in told] == [
        3 * FIRST + EACH * round_ for round_ in range(rounds + 1)
    ]
    assert all(np.array_equal(labels.told, data.class_indices[labels.positions]) for labels in told)
    assert curve["error"][-1] < curve["error"][0]


def test_the_page_tells_who_is_better_than_random(data: Split) -> None:
    """Every strategy as far from random labels as it was made, and in as many seeds."""
    off = {"random": 0.0, "uncertain": 0.05, "diverse": -0.03}
    curves = {
        ("made", learner): [
            {
                "error": [0.2 + off[learner.strategy]] * (1 + ROUNDS),
                "variation": [0.1] * (1 + ROUNDS),
                "calibration": [0.1] * (1 + ROUNDS),
            }
        ]
        * 2
        for learner in LEARNERS
    }
    lines = [line for line in page(curves, ["made"]).splitlines() if "of 2)" in line]
    assert [("+0.050 (0 of 2)" in line, "-0.030 (2 of 2)" in line) for line in lines] == [(True, False), (False, True)]


def test_curves_that_are_known_are_not_run_again(data: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([0.5, 0.4])
    monkeypatch.setattr(learning, "run", lambda *task: {"error": [next(answers)]})
    found = [learning._kept(Results(folder=tmp_path), ("made", AUTO, seed))["error"] for seed in (0, 0, 1)]
    assert found == [[0.5], [0.5], [0.4]]
