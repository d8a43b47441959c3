"""Candidates pooled into one."""

import numpy as np
import pytest

from core.problem.result import Linear, Result, Status
from core.selection.stack import Member, stack, stack_weights, weights_of
from core.validation.calibration import SLOPE, Calibration


def member(weight: float, n_classes: int, seed: int) -> tuple[Member, np.ndarray]:
    """A random member, and the scores of ten rows by its models."""
    rng = np.random.default_rng(seed)
    n_columns = 1 if n_classes == 2 else n_classes
    scores = rng.standard_normal((10, n_columns))
    results = [
        Result(Linear(rng.standard_normal(3), float(rng.standard_normal())), scores[:, column], float(seed), Status.CONVERGED, (), 2.0)
        for column in range(n_columns)
    ]
    calibration = Calibration(rng.uniform(1, 4, n_columns), rng.standard_normal(n_columns), rng.uniform(0.2, 3, n_classes))
    return Member(weight, results, scores[:6], calibration), scores


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stack_has_the_weighted_geometric_mean_of_the_probabilities(n_classes: int) -> None:
    known = [member(0.7, n_classes, 1), member(0.3, n_classes, 2)]
    results, held_out = stack([each for each, _ in known])
    logs = sum(each.weight * np.log(each.calibration.probabilities(scores.copy())) for each, scores in known)
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    plain = Calibration(np.full(len(results), SLOPE), np.zeros(len(results)), np.ones(n_classes))
    scores = np.column_stack([result.unlabeled_scores for result in results])
    np.testing.assert_allclose(plain.probabilities(scores), expected, atol=1e-9)
    np.testing.assert_allclose(held_out, scores[:6])


def test_a_stack_is_linear_and_scores_as_its_members_do_together() -> None:
    known = [member(0.6, 3, 1)[0], member(0.4, 3, 2)[0]]
    results, _ = stack(known)
    row = np.array([0.3, -1.0, 2.0])
    for column, result in enumerate(results):
        assert isinstance(result.decision, Linear)
        expected = 0.0
        for each in known:
            own = each.results[column].decision
            assert isinstance(own, Linear)
            score = row @ own.coefficients + own.intercept
            logit = each.calibration.slopes[column] * score + each.calibration.offsets[column] + np.log(each.calibration.odds[column])
            expected += each.weight * logit / SLOPE
        assert row @ result.decision.coefficients + result.decision.intercept == pytest.approx(expected)
        assert result.passes == 4.0
        assert result.objective == 1.0


def test_likelier_candidates_weigh_more_and_hopeless_ones_nothing() -> None:
    assert weights_of([-3.0, -3.0], 0.5).tolist() == [0.5, 0.5]
    assert weights_of([0.0, -2.0], 0.5) == pytest.approx(np.array([1.0, np.exp(-1)]) / (1 + np.exp(-1)))
    first, second = stack_weights([-10.0, -12.0])
    assert first > second > 0.05
    assert first + second == pytest.approx(1)
    assert stack_weights([-10.0, -40.0]) == [1.0, 0.0]
    assert stack_weights([-np.inf, -40.0]) == [0.0, 1.0]
    assert weights_of([-np.inf, -np.inf], 0.5).tolist() == [0.5, 0.5]
