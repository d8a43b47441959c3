"""Candidates pooled into one."""

import numpy as np
import pytest

from core.problem.result import Linear, Result, Status
from core.selection.candidates import Candidate, Wanted
from core.selection.choice import choose
from core.selection.class_fractions import FractionEstimate
from core.selection.comparison import Judgement
from core.selection.stack import Member, stack, stack_weights, weights_by_loss
from core.validation.calibration import SLOPE, Calibration


def member(weight: float, n_classes: int, seed: int, columns: tuple[int, ...] = (0, 1, 2)) -> tuple[Member, np.ndarray]:
    """A random member of three columns, and the scores of ten rows by its models."""
    rng = np.random.default_rng(seed)
    n_columns = 1 if n_classes == 2 else n_classes
    scores = rng.standard_normal((10, n_columns))
    results = [
        Result(Linear(rng.standard_normal(3), float(rng.standard_normal())), scores[:, column], float(seed), Status.CONVERGED, (), 2.0)
        for column in range(n_columns)
    ]
    calibration = Calibration(rng.uniform(1, 4, n_columns), rng.standard_normal(n_columns), rng.uniform(0.2, 3, n_classes))
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
            logit = each.calibration.slopes[column] * score + each.calibration.offsets[column] + np.log(each.calibration.odds[column])
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


def candidate(algorithm: str, log_likelihood: float, fractions: tuple[float, float] | None = None) -> Candidate:
    """A candidate that labels left out make so likely."""

    def solvers(wanted: Wanted) -> list[object]:
        raise AssertionError

    found = None if fractions is None else FractionEstimate(np.array(fractions), np.zeros((0, 1)), [], [], [], False)
    judgement = Judgement(log_likelihood, -10.0, 0)
    traits = {"linear": algorithm not in ("graph", "ridge"), "learns": algorithm not in ("svm", "ridge")}
    return Candidate(algorithm, algorithm, np.zeros((0, 1)), judgement, solvers, {}, found=found, **traits)  # type: ignore[arg-type]


@pytest.mark.parametrize(("supervised", "share"), [(-9.0, 0.0), (-5.0, 0.1 / 1.1), (-1.0, 5.46 / 6.46), (-np.inf, 0.0)])
def test_the_supervised_takes_over_only_where_labels_left_out_clearly_say_so(supervised: float, share: float) -> None:
    weights = stack_weights([candidate("svm", supervised), candidate("tsvm", -5.0, (0.5, 0.5))])
    assert weights[0] == pytest.approx(share, abs=1e-2)
    assert sum(weights) == pytest.approx(1)


def test_without_labels_left_out_the_supervised_has_no_part() -> None:
    candidates = [candidate("svm", 0.0), candidate("tsvm", 0.0, (0.5, 0.5)), candidate("mixture", 0.0, (0.5, 0.5))]
    assert stack_weights([each._replace(judgement=Judgement(0.0, 0.0, 0)) for each in candidates]) == [0.0, 0.5, 0.5]


def test_what_hardly_counts_is_left_out() -> None:
    assert stack_weights([candidate("tsvm", -3.0, (0.5, 0.5)), candidate("mixture", -40.0, (0.5, 0.5))]) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        ({"svm": -3.0, "tsvm": -4.0, "graph": -2.0}, ["graph"]),
        ({"svm": -1.0, "tsvm": -4.0, "graph": -2.0}, ["svm", "tsvm"]),
        ({"svm": -3.0, "tsvm": -4.0, "ridge": -2.0}, ["tsvm", "svm"]),
        ({"svm": -6.0, "tsvm": -6.0, "ridge": -2.0}, ["ridge"]),
        ({"svm": 0.0, "tsvm": 0.0, "graph": 0.0}, ["tsvm", "svm"]),
        ({"svm": -4.0, "tsvm": -3.0, "mixture": -2.0}, ["mixture", "tsvm"]),
        ({"svm": -4.0}, ["svm"]),
    ],
)
def test_linear_candidates_are_added_and_another_is_alone(known: dict[str, float], chosen: list[str]) -> None:
    fractions = {"tsvm": (0.8, 0.2), "mixture": (0.4, 0.6), "graph": (0.1, 0.9), "ridge": (0.1, 0.9)}
    candidates = [candidate(name, value, fractions.get(name)) for name, value in known.items()]
    choice = choose(candidates)
    assert [candidates[place].algorithm for place, _ in choice.places] == chosen
    assert sum(weight for _, weight in choice.places) == pytest.approx(1)
    if len(known) == 1:
        assert choice.fractions is None
    elif "mixture" in known:
        assert choice.fractions is not None
        assert choice.fractions[0] == pytest.approx((0.8 * 0.5625 + 0.4) / 1.5625)
    elif chosen in (["graph"], ["ridge"]):
        assert choice.fractions is not None
        share = (3 / (1 - known["tsvm"])) ** 2
        assert choice.fractions[0] == pytest.approx((0.8 * share + 0.1) / (share + 1))
    else:
        assert choice.fractions is not None
        assert choice.fractions.tolist() == [0.8, 0.2]
