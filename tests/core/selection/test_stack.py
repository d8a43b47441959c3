"""Candidates pooled into one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.problem import Linear, Result, Status
from core.selection.candidates import Candidate, ModelSpec
from core.selection.class_fractions import FractionEstimate
from core.selection.prediction import Judgement, judge
from core.selection.stack import Member, choose, met_fractions, stack, stack_weights
from core.validation.calibration import SLOPE, Calibration, calibration_at
from tests.there import there


def member(weight: float, n_classes: int, seed: int, columns: tuple[int, ...] = (0, 1, 2)) -> tuple[Member, np.ndarray]:
    """A random member of three columns, and the scores of ten rows by its models."""
    rng = np.random.default_rng(seed)
    n_columns = 1 if n_classes == 2 else n_classes
    scores = rng.standard_normal((10, n_columns))
    results = [
        Result(
            Linear(rng.standard_normal(3), float(rng.standard_normal())),
            scores[:, column],
            float(seed),
            Status.CONVERGED,
            (),
            2.0,
        )
        for column in range(n_columns)
    ]
    calibration = Calibration(
        rng.uniform(1, 4, n_columns), rng.standard_normal(n_columns), rng.uniform(0.2, 3, n_classes)
    )
    return Member(weight, np.array(columns), results, scores[:6], calibration), scores


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stack_has_the_weighted_geometric_mean_of_the_probabilities(n_classes: int) -> None:
    known = [member(0.7, n_classes, 1), member(0.3, n_classes, 2)]
    results, held_out = stack([each for each, _ in known], 3)
    logs = sum(each.weight * np.log(each.calibration.probabilities(scores.copy())) for each, scores in known)
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    plain = Calibration(np.full(len(results), SLOPE), np.zeros(len(results)), np.ones(n_classes))
    scores = np.column_stack([result.unlabeled_scores for result in results])
    np.testing.assert_allclose(plain.probabilities(scores), expected, atol=1e-9)
    np.testing.assert_allclose(held_out, scores[:6])


def test_a_stack_is_linear_and_scores_as_its_members_do_together() -> None:
    known = [member(0.6, 3, 1, (0, 2, 3))[0], member(0.4, 3, 2, (1, 2, 4))[0]]
    results, _ = stack(known, 5)
    row = np.array([0.3, -1.0, 2.0, 0.5, -0.7])
    for column, result in enumerate(results):
        assert isinstance(result.decision, Linear)
        expected = 0.0
        for each in known:
            own = each.results[column].decision
            assert isinstance(own, Linear)
            score = row[each.columns] @ own.coefficients + own.intercept
            logit = (
                each.calibration.slopes[column] * score
                + each.calibration.offsets[column]
                + np.log(each.calibration.odds[column])
            )
            expected += each.weight * logit / SLOPE
        assert row @ result.decision.coefficients + result.decision.intercept == pytest.approx(expected)
        assert result.passes == 4.0
        assert result.objective == 1.0


LABELS = np.arange(40) % 2
PLACES = {"svm": 0, "tsvm": 10, "naive_bayes": 20, "label_spreading": 0, "kernel_ridge": 0}
"""where a method's mistakes begin: those of methods that are added are different ones"""


def candidate(algorithm: str, wrong: int, fractions: tuple[float, float] | None = None) -> Candidate:
    """A candidate that has so many of 40 labels left out wrong."""

    def solvers(wanted: ModelSpec) -> Any:
        raise AssertionError

    scores = np.where(LABELS, 1.0, -1.0)
    scores[np.arange(PLACES[algorithm], PLACES[algorithm] + wrong) % 40] *= -1
    found = None if fractions is None else FractionEstimate(np.array(fractions))
    traits: dict[str, Any] = {
        "linear": algorithm not in ("label_spreading", "kernel_ridge"),
        "uses_unlabeled": algorithm not in ("svm", "kernel_ridge"),
    }
    judgement = judge(scores[:, None], LABELS)
    return Candidate(algorithm, algorithm, scores[:, None], judgement, solvers, {}, found=found, **traits)


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_fractions_meet_the_probabilities_of_the_members(kept: float) -> None:
    """One member with log-odds that bring it to the fractions exactly: a share of them is left."""
    scores = np.random.default_rng(0).standard_normal((2_000, 3))
    fractions = np.array([0.6, 0.3, 0.1])
    whole = calibration_at(np.full(3, SLOPE), np.zeros(3), scores, fractions)
    results = [Result(Linear(np.zeros(3), 0.0), column, 0.0, Status.CONVERGED) for column in scores.T]
    known = [Member(1.0, np.arange(3), results, scores[:6], whole)]
    found = met_fractions(stack(known, 3), known, fractions, kept, lambda: None)
    logits = SLOPE * scores + kept * whole.log_odds
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected.mean(axis=0), atol=1e-4)


def test_weights_are_inverse_to_the_fourth_power_of_the_loss() -> None:
    def weights(*log_likelihoods: float) -> list[float]:
        known = candidate("tsvm", 4)
        judged = [known._replace(judgement=known.judgement._replace(log_likelihood=each)) for each in log_likelihoods]
        return list(stack_weights(judged))

    assert weights(-3.0, -3.0) == [0.5, 0.5]
    assert weights(-7.0, -3.0) == pytest.approx([1 / 17, 16 / 17])
    assert weights(-np.inf, -40.0) == [0.0, 1.0]
    assert weights(-np.inf, -np.inf) == [0.5, 0.5]
    assert weights(0.0, -0.05)[1] > 0.4, "labels that are all right prove nothing"
    assert weights(-1.0, -9.0) == [1.0, 0.0], "what hardly counts is left out"
    assert weights(*[-3.0] * 40) == pytest.approx([1 / 40] * 40), "of many that count the same none is"


def test_odds_multiply_weights_and_leave_no_candidate_without_any() -> None:
    svm = candidate("svm", 6)._replace(odds=0.1)
    assert stack_weights([svm, svm._replace(odds=1.0)]) == pytest.approx([1 / 11, 10 / 11])
    assert stack_weights([svm]) == [1.0]


def test_what_is_no_better_than_chance_hardly_counts() -> None:
    """Of 40 labels 22 are right, which is luck, beside 34."""
    assert stack_weights([candidate("naive_bayes", 18), candidate("tsvm", 6)])[0] < 0.15


def test_scores_that_are_not_finite_have_no_part() -> None:
    broken = np.full((40, 1), np.nan)
    svm, tsvm = candidate("svm", 2), candidate("tsvm", 6, (0.5, 0.5))
    nothing = judge(broken, LABELS)
    assert stack_weights([svm._replace(held_out=broken, judgement=nothing), tsvm]).tolist() == [0.0, 1.0]
    assert stack_weights([svm, tsvm._replace(held_out=broken, judgement=nothing)]).tolist() == [1.0, 0.0]


def test_without_labels_left_out_the_supervised_has_no_part() -> None:
    candidates = [candidate("svm", 0), candidate("tsvm", 0, (0.5, 0.5)), candidate("naive_bayes", 0, (0.5, 0.5))]
    nothing = [
        each._replace(judgement=Judgement(0.0, 0.0, 0), held_out=np.full((40, 1), np.nan)) for each in candidates
    ]
    assert stack_weights(nothing).tolist() == [0.0, 0.5, 0.5]


def test_fractions_are_the_mean_of_the_estimates_by_the_same_weights() -> None:
    candidates = [
        candidate("svm", 6),
        candidate("tsvm", 8, (0.8, 0.2)),
        candidate("naive_bayes", 3, (0.4, 0.6)),
        candidate("label_spreading", 4, (0.1, 0.9)),
    ]
    whole = [1.0] * 4
    choice = choose(candidates, whole)
    weights = [weight for _, weight in choice.places]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert [candidates[place].algorithm for place, _ in choice.places][:2] == ["naive_bayes", "label_spreading"]
    own = stack_weights(candidates)
    assert choice.fractions is not None
    assert choice.fractions[0] == pytest.approx((own[1:] * [0.8, 0.4, 0.1]).sum() / own[1:].sum())
    assert choose(candidates[:1], whole[:1]).fractions is None
    assert not choice.counted
    counting = candidates[1]._replace(found=replace(there(candidates[1].found), counts_used=True))
    assert choose([counting], [1.0]).counted
    alone = choose([candidates[0], candidate("tsvm", 36, (0.8, 0.2))], [1.0, 1.0])
    assert there(alone.fractions).tolist() == [0.8, 0.2]


def test_an_estimate_of_what_documents_lack_hardly_counts_for_fractions() -> None:
    candidates = [candidate("tsvm", 4, (0.8, 0.2)), candidate("tsvm", 4, (0.1, 0.9))]
    halved = choose(candidates, [1.0, 0.5])
    assert there(halved.fractions)[0] == pytest.approx((0.8 + 0.1 / 16) / (1 + 1 / 16))
    assert [weight for _, weight in halved.places] == [0.5, 0.5]
    assert there(choose(candidates, [0.0, 0.0]).fractions)[0] == pytest.approx(0.45)
