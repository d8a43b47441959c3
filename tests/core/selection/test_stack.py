"""Candidates pooled into one."""

from typing import Any

import numpy as np
import pytest

from core.problem.result import Linear, Result, Status
from core.selection.candidates import Candidate, ModelSpec
from core.selection.class_fractions import FractionEstimate
from core.selection.comparison import Judgement, judge
from core.selection.stack import Member, choose, stack, stack_weights, weights_by_loss
from core.validation.calibration import SLOPE, Calibration


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


def test_weights_are_inverse_to_the_square_of_the_loss() -> None:
    assert weights_by_loss([-3.0, -3.0]).tolist() == [1.0, 1.0]
    assert weights_by_loss([-7.0, -3.0]).tolist() == [0.25, 1.0]
    assert weights_by_loss([-np.inf, -40.0]).tolist() == [0.0, 1.0]
    assert weights_by_loss([-np.inf, -np.inf]).tolist() == [1.0, 1.0]
    assert weights_by_loss([0.0, -0.05])[1] > 0.9, "labels that are all right prove nothing"


LABELS = np.arange(40) % 2
PLACES = {"svm": 0, "tsvm": 10, "naive_bayes": 20, "label_spreading": 0, "kernel_ridge": 0}
"""where a method's mistakes begin: those of methods that are added are different ones"""


def candidate(algorithm: str, wrong: int, fractions: tuple[float, float] | None = None) -> Candidate:
    """A candidate that has so many of 40 labels left out wrong."""

    def solvers(wanted: ModelSpec) -> Any:
        raise AssertionError

    scores = np.where(LABELS, 1.0, -1.0)
    scores[np.arange(PLACES[algorithm], PLACES[algorithm] + wrong) % 40] *= -1
    found = None if fractions is None else FractionEstimate(np.array(fractions), np.zeros((0, 1)), [], [], [], False)
    traits: dict[str, Any] = {
        "linear": algorithm not in ("label_spreading", "kernel_ridge"),
        "uses_unlabeled": algorithm not in ("svm", "kernel_ridge"),
    }
    judgement = judge(scores[:, None], LABELS)
    return Candidate(algorithm, algorithm, scores[:, None], judgement, solvers, {}, found=found, **traits)


def log_likelihood(wrong: int) -> float:
    return candidate("svm", wrong).judgement.log_likelihood


@pytest.mark.parametrize(("supervised", "least", "most"), [(12, 0.0, 0.03), (6, 0.1, 0.15), (2, 0.6, 1.0)])
def test_the_supervised_has_a_large_share_only_where_labels_left_out_clearly_say_so(
    supervised: int, least: float, most: float
) -> None:
    """The mistakes are the same, as far as there are as many: a sum is no better than the better one."""
    weights = stack_weights(
        [
            candidate("svm", supervised),
            candidate("naive_bayes", 6, (0.5, 0.5))._replace(held_out=candidate("svm", 6).held_out),
        ],
        LABELS,
    )
    assert least <= weights[0] <= most
    assert sum(weights) == pytest.approx(1)


def test_a_sum_with_the_supervised_is_taken_where_it_is_likelier_than_either_alone() -> None:
    """Their mistakes have nothing to do with each other, and labels are many."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    known = []
    for name in ("svm", "tsvm"):
        scores = (np.where(labels, 1.0, -1.0) + rng.normal(0, 1.2, 400))[:, None]
        known.append(candidate(name, 0)._replace(held_out=scores, judgement=judge(scores, labels)))
    weights = stack_weights(known, labels)
    assert 0.4 < weights[0] < 0.6, "neither alone"


def test_scores_that_are_not_finite_have_no_part() -> None:
    broken = np.full((40, 1), np.nan)
    svm, tsvm = candidate("svm", 2), candidate("tsvm", 6, (0.5, 0.5))
    nothing = judge(broken, LABELS)
    assert stack_weights([svm._replace(held_out=broken, judgement=nothing), tsvm], LABELS) == [0.0, 1.0]
    assert stack_weights([svm, tsvm._replace(held_out=broken, judgement=nothing)], LABELS) == [1.0, 0.0]


def test_without_labels_left_out_the_supervised_has_no_part() -> None:
    candidates = [candidate("svm", 0), candidate("tsvm", 0, (0.5, 0.5)), candidate("naive_bayes", 0, (0.5, 0.5))]
    nothing = [
        each._replace(judgement=Judgement(0.0, 0.0, 0), held_out=np.full((40, 1), np.nan)) for each in candidates
    ]
    assert stack_weights(nothing, LABELS) == [0.0, 0.5, 0.5]


def test_what_hardly_counts_is_left_out() -> None:
    assert stack_weights([candidate("tsvm", 0, (0.5, 0.5)), candidate("naive_bayes", 20, (0.5, 0.5))], LABELS) == [
        1.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        ({"svm": 6, "tsvm": 8, "label_spreading": 4}, ["label_spreading"]),
        ({"svm": 1, "tsvm": 8, "label_spreading": 4}, ["svm", "tsvm"]),
        ({"svm": 8, "tsvm": 6, "kernel_ridge": 5}, ["tsvm", "svm"]),
        ({"svm": 9, "tsvm": 9, "kernel_ridge": 2}, ["kernel_ridge"]),
        ({"svm": 4, "tsvm": 4, "label_spreading": 4}, ["tsvm", "svm"]),
        ({"svm": 12, "tsvm": 4, "naive_bayes": 3}, ["naive_bayes", "tsvm"]),
        ({"svm": 4}, ["svm"]),
    ],
)
def test_linear_candidates_are_added_and_another_is_alone(known: dict[str, int], chosen: list[str]) -> None:
    fractions = {
        "tsvm": (0.8, 0.2),
        "naive_bayes": (0.4, 0.6),
        "label_spreading": (0.1, 0.9),
        "kernel_ridge": (0.1, 0.9),
    }
    candidates = [candidate(name, wrong, fractions.get(name)) for name, wrong in known.items()]
    choice = choose(candidates, LABELS)
    assert [candidates[place].algorithm for place, _ in choice.places] == chosen
    assert sum(weight for _, weight in choice.places) == pytest.approx(1)
    if len(known) == 1:
        assert choice.fractions is None
        return
    assert choice.fractions is not None
    others = [
        name
        for name in ("naive_bayes", "label_spreading", "kernel_ridge")
        if name in known and (name == "naive_bayes" or chosen == [name])
    ]
    if others:
        losses = [1 - log_likelihood(known[name]) for name in ("tsvm", others[0])]
        share = (losses[1] / losses[0]) ** 4
        assert choice.fractions[0] == pytest.approx((0.8 * share + fractions[others[0]][0]) / (share + 1))
    else:
        assert choice.fractions.tolist() == [0.8, 0.2]
