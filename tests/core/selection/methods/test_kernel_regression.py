"""The kernel model of scores that are known on the documents of the training alone."""

import numpy as np
import pytest

from core.engine.requests import CheckModelSize, Report
from core.problem import Expansion, Result, Status
from core.progress import Checkpoint, Phase, Stopped
from core.selection.methods import kernel_regression as module
from core.selection.methods.kernel_regression import KernelRegression, known_scores
from tests.core.problems import answer_of, dense_of
from tests.core.selection.pools import kernel_of, rings, selection_data_of


def regression_of(checkpoint: Checkpoint = lambda: None) -> tuple[KernelRegression, np.ndarray, np.ndarray]:
    """A regression of a smooth score, the score, and the rows."""
    data = selection_data_of(rings(0, n=300))
    rows = dense_of(data.scaled.rows).astype(np.float64)
    targets = np.sin(2 * rows[:, :1])
    return KernelRegression(data, targets, kernel_of(data), checkpoint), targets, rows


def solved(regression: KernelRegression) -> Result:
    result: Result = answer_of(regression.steps(0))[0]
    return result


def test_it_predicts_the_scores_as_linear_algebra_has_it() -> None:
    regression, targets, rows = regression_of()
    result = solved(regression)
    assert isinstance(result.decision, Expansion)
    kernel = result.decision.kernel
    values = np.exp(-kernel.gamma * ((rows[:, None] - rows) ** 2).sum(axis=2))
    mean = targets.mean()
    expected = values @ np.linalg.solve(values + module._RIDGE * np.eye(len(rows)), targets[:, 0] - mean) + mean
    np.testing.assert_allclose(result.unlabeled_scores, expected[-len(result.unlabeled_scores) :], atol=1e-3)
    np.testing.assert_allclose(values @ result.decision.weights + mean, expected, atol=1e-3)
    assert np.abs(expected - targets[:, 0]).mean() < 0.1
    assert result.status is Status.CONVERGED


def test_rows_without_a_score_are_not_kept() -> None:
    data = selection_data_of(rings(0, n=300))
    targets = np.ones((300, 1))
    targets[:3] = np.nan
    decision = solved(KernelRegression(data, targets, kernel_of(data), lambda: None)).decision
    assert isinstance(decision, Expansion)
    assert decision.rows.tolist() == list(range(3, 300))
    assert decision.intercept == 1.0


def test_of_many_rows_the_model_keeps_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LANDMARKS", 100)
    regression, targets, _ = regression_of()
    result = solved(regression)
    assert isinstance(result.decision, Expansion)
    assert len(result.decision.rows) == 100
    assert np.abs(result.unlabeled_scores - targets[-len(result.unlabeled_scores) :, 0]).mean() < 0.2
    kept = module._landmarks(400, 390)
    assert len(np.unique(kept)) == 100
    assert (kept >= 390).sum() == 10


def test_a_stop_is_heard_while_the_kernel_matrix_is_made_and_factored() -> None:
    asked, heard = 0, False

    def checkpoint() -> None:
        nonlocal asked
        asked += 1
        if heard:
            raise Stopped

    solving = regression_of(checkpoint)[0].steps(0)
    assert isinstance(next(solving), CheckModelSize)
    assert isinstance(next(solving), Report)
    before, heard = asked, True
    with pytest.raises(StopIteration) as ending:
        next(solving)
    assert ending.value.value.status is Status.CANCELLED
    assert asked == before + 1


def test_known_scores_are_a_result_that_can_be_stopped() -> None:
    scores = np.arange(3.0)
    steps = known_scores(Phase("toy"), scores, 0.5)
    assert next(steps).phase == Phase("toy")  # type: ignore[union-attr]
    with pytest.raises(StopIteration) as ending:
        steps.throw(Stopped())
    assert ending.value.value.status is Status.CANCELLED
    np.testing.assert_array_equal(ending.value.value.unlabeled_scores, scores)
