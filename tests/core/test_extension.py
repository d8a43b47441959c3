"""What an addition touches: an algorithm is a file and a line of the registry, a loss a file. CONTRIBUTING has the recipes."""

import numpy as np
import pytest

from core.checks import check_options
from core.engine.runner import Report, Sweeper
from core.errors import InvalidDocuments
from core.memory_estimate import training_bytes
from core.models.io import read_model
from core.numerics.vectors import Vector
from core.optimizers.newton import Ending, Iterate, StoppingRule, adopt, minimise
from core.options.base import TrainingSize
from core.problem.result import Linear, Result, Status
from core.registry import OFFERED, Algorithm
from core.train import TrainingTask, train
from tests.core.problems import dense_of, normal, rows_of, with_bias
from tests.core.toy_one_class import OneClassOptions


@pytest.fixture
def one_class(monkeypatch: pytest.MonkeyPatch) -> str:
    line = Algorithm("one_class", "a toy", OneClassOptions, "tests.core.toy_one_class:one_class", start=None)
    monkeypatch.setitem(OFFERED, line.name, line)
    return line.name


def test_an_algorithm_of_one_class_is_a_file_and_a_line(one_class: str) -> None:
    rng = np.random.default_rng(0)
    corner = np.array([2.0, 2.0, 0.0, 0.0, 0.0])
    near, far = rng.random((30, 5)) + corner, rng.random((20, 5)) + 2.0 - corner
    class_indices = np.where(np.arange(50) < 10, 0, -1)
    training = train(TrainingTask(rows_of(np.vstack([near, far])), class_indices, ["sport"], one_class, {"share": 0.9}))
    assert training.status is Status.CONVERGED
    assert (training.scores[:20, 0] > training.scores[20:, 0].max()).all()
    model = read_model(*training.model.to_arrays())
    np.testing.assert_allclose(model.scores(rows_of(far))[:, 0], training.scores[20:, 0])
    assert [model.classes[label] for label in model.labels_of(training.scores)[:2]] == ["sport", "sport"]
    assert training_bytes(OneClassOptions(), TrainingSize(50, 10, 250, 5, 1)) > 0


def test_it_is_told_what_it_needs(one_class: str) -> None:
    with pytest.raises(InvalidDocuments, match="at least one class; no document is labeled"):
        check_options(one_class, {}, [])
    with pytest.raises(InvalidDocuments, match="at least two classes; all labeled documents are of class 'sport'"):
        check_options("svm", {}, ["sport"])


class Squared:
    """A toy loss, ``½ Σ (o − y)²``: one piece, so that nothing ever leaves the straight line."""

    def __init__(self, y: Vector) -> None:
        self._y = y

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.ones(len(self._y), np.bool_)

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        slopes[:], curvatures[:] = scores - self._y, 1.0
        return float(0.5 * (slopes * slopes).sum())

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        return float(((scores + step * direction - self._y) * direction).sum()), float((direction * direction).sum())

    def update(self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector) -> int:
        slopes[:], jumps[:] = scores - self._y, 0.0
        return 0


def test_newton_takes_any_loss() -> None:
    """Ridge regression, against its normal equations."""
    rng = np.random.default_rng(1)
    rows, y = rows_of(normal(rng, 60).reshape(12, 5)), normal(rng, 12)
    iterate, endings = Iterate.zero(12, 5), []

    def steps():  # type: ignore[no-untyped-def]
        loss = Squared(y)
        yield from adopt(iterate, loss)
        endings.append((yield from minimise(iterate, loss, 0.1, StoppingRule(1e-12), Report("", 0, 0.0, None, 0.0))))
        return Result(Linear(iterate.coefficients[:-1], 0.0), np.zeros(0), 0.0, Status.CONVERGED)

    with Sweeper(rows, threads=1) as sweeper:
        sweeper.run({"": steps})
    X = with_bias(dense_of(rows))
    np.testing.assert_allclose(iterate.coefficients, np.linalg.solve(X.T @ X + 0.1 * np.eye(6), X.T @ y), atol=1e-6)
    assert isinstance(endings[0], Ending)
    assert endings[0].status is Status.CONVERGED
