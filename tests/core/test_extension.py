"""Files of an addition: an algorithm is a file and a line of the registry, a loss a file.

CONTRIBUTING has the recipes.
"""

from typing import Any

import numpy as np
import pytest

from core.engine.requests import Phase, Report
from core.engine.runner import Scheduler
from core.errors import InvalidDocuments, InvalidOption, ModelTooLarge
from core.memory_estimate import training_bytes
from core.models.io import read_model
from core.numerics.vectors import Vector
from core.optimizers.newton import Ending, Iterate, StoppingRule, minimise
from core.options.base import TrainingSize
from core.problem import Linear, Result, Status
from core.registry import OFFERED, Algorithm, check_options
from core.train import TrainingContext, TrainingTask, train
from core.warm_up import warming
from tests.core.problems import dense_of, normal, rows_of, with_bias
from tests.core.toy_kernel import KernelMeanOptions
from tests.core.toy_one_class import OneClassOptions


@pytest.fixture
def one_class(monkeypatch: pytest.MonkeyPatch) -> str:
    line = Algorithm("one_class", "a toy", OneClassOptions, "tests.core.toy_one_class:one_class", start=None)
    monkeypatch.setitem(OFFERED, line.name, line)
    return line.name


def test_an_algorithm_of_one_class_is_a_file_and_a_line(one_class: str, rng: np.random.Generator) -> None:
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
    with pytest.raises(InvalidDocuments, match="at least two classes; 'sport' is the only class"):
        check_options("svm", {}, ["sport"])


@pytest.fixture
def kernel_mean(monkeypatch: pytest.MonkeyPatch) -> str:
    line = Algorithm("kernel_mean", "a toy", KernelMeanOptions, "tests.core.toy_kernel:kernel_mean", start=None)
    monkeypatch.setitem(OFFERED, line.name, line)
    return line.name


@pytest.mark.parametrize("kernel", [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_kernel_algorithm_is_a_file_and_a_line(
    kernel_mean: str, n_classes: int, kernel: dict[str, Any], rng: np.random.Generator
) -> None:
    truth = np.arange(90) % n_classes
    rows = rows_of(rng.standard_normal((90, 4)) * 0.4 + 2.0 * np.eye(n_classes, 4)[truth])
    labels = np.where(np.arange(90) < 30, truth, -1)
    training = train(
        TrainingTask(rows, labels, ["a", "b", "c"][:n_classes], kernel_mean, {"probabilities": True, **kernel})
    )
    assert (training.status, training.warnings) == (Status.CONVERGED, [])
    assert np.mean(training.model.labels_of(training.scores) == truth[30:]) > 0.9
    assert training.probabilities is not None
    model = read_model(*training.model.to_arrays())
    np.testing.assert_allclose(model.scores(rows)[30:], training.scores, atol=1e-4)


@pytest.mark.usefixtures("every_report")
def test_it_is_stopped_and_refused_when_its_model_is_too_large(kernel_mean: str) -> None:
    rng = np.random.default_rng(1)
    task = TrainingTask(rows_of(rng.standard_normal((40, 4))), np.arange(40) % 4 - 2, ["a", "b"], kernel_mean, {})
    with pytest.raises(ModelTooLarge):
        train(task, TrainingContext(max_model_bytes=100))
    assert train(task, TrainingContext(observer=lambda point: True)).status is Status.CANCELLED


def test_its_options_say_what_memory_it_takes_and_what_compiles_it(kernel_mean: str) -> None:
    size = TrainingSize(10_000, 1_000, 10, 10, 2)
    options = check_options(kernel_mean, {"rate": 2.0}, ["a", "b"], size.n_documents)
    assert (
        training_bytes(options, size) - training_bytes(options.model_copy(update={"cache_bytes": 0}), size)
        == 4 * 1_000**2
    )
    assert "lower cache_bytes, since 4 MiB" in options.memory_remedy(size)
    assert options.hardly_learns(1e-6, 10) is False
    assert check_options(kernel_mean, {"gamma": 1.0}, ["a", "b"]).hardly_learns(1e-6, 10)
    assert len(list(warming([(kernel_mean, 2), (kernel_mean, 16)]))) == 2 * 2 * 2  # rows, classes, kernels
    with pytest.raises(InvalidOption, match="unknown option"):
        check_options(kernel_mean, {"rites": 2.0}, ["a", "b"])


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

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        slopes[:], jumps[:] = scores - self._y, 0.0
        return 0


def test_newton_takes_any_loss() -> None:
    """Ridge regression, against its normal equations."""
    rng = np.random.default_rng(1)
    rows, y = rows_of(normal(rng, 60).reshape(12, 5)), normal(rng, 12)
    iterate, endings = Iterate.zero(12, 5), []

    def steps():  # type: ignore[no-untyped-def]
        loss = Squared(y)
        endings.append(
            (yield from minimise(iterate, loss, 0.1, StoppingRule(1e-12), Report(Phase(), 0, 0.0, None, 0.0)))
        )
        return Result(Linear(iterate.coefficients[:-1], 0.0), np.zeros(0), 0.0, Status.CONVERGED)

    with Scheduler(rows, threads=1) as scheduler:
        scheduler.run({Phase(): steps})
    X = with_bias(dense_of(rows))
    np.testing.assert_allclose(iterate.coefficients, np.linalg.solve(X.T @ X + 0.1 * np.eye(6), X.T @ y), atol=1e-6)
    assert isinstance(endings[0], Ending)
    assert endings[0].status is Status.CONVERGED
