"""Documents of generated classes, trainings with them, and how wrong these are."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.kernels.function import Kernel
from core.kernels.gamma import resolve_kernel
from core.selection.data import SelectionData
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import rows_of
from tests.there import there

N, WIDTH = 120, 6
"""documents in two parts, and the features of each part"""
PARTS = {"one": slice(0, WIDTH), "two": slice(WIDTH, 2 * WIDTH)}


class Pool(NamedTuple):
    rows: SparseRows
    class_indices: NDArray[np.int32]
    truth: NDArray[np.int64]

    @classmethod
    def of(cls, rows: SparseRows, truth: NDArray[np.int64], per_class: int) -> Self:
        """Documents of which the first ``per_class`` of each class have their label."""
        class_indices = np.full(len(truth), -1, np.int32)
        for class_index in np.unique(truth):
            class_indices[np.flatnonzero(truth == class_index)[:per_class]] = class_index
        return cls(rows, class_indices, truth)


def pool(seed: int, fractions: list[float], per_class: int = 6, gap: float = 2.2, n: int = 400, d: int = 12) -> Pool:
    """Gaussian classes around orthogonal centres, of given sizes; as many labels of each class."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(fractions), n, p=fractions)
    centres = gap * np.eye(len(fractions), d)
    return Pool.of(rows_of(rng.standard_normal((n, d)) + centres[truth]), truth, per_class)


def classes_of(data: Pool) -> list[str]:
    return [f"c{k}" for k in range(int(data.class_indices.max()) + 1)]


def fit(
    data: Pool, algorithm: str = "auto", options: dict[str, Any] | None = None, seed: int = 0, **context: Any
) -> Training:
    return train(
        TrainingTask(data.rows, data.class_indices, classes_of(data), algorithm, options or {}, seed),
        TrainingContext(threads=1, **context),
    )


def error(training: Training, data: Pool) -> float:
    return float(np.mean(training.model.labels_of(training.scores) != data.truth[training.unlabeled]))


def variation(training: Training, data: Pool) -> float:
    rest = data.truth[training.unlabeled]
    found = list(there(training.report)["class_fractions"].values())
    return float(np.abs(np.bincount(rest, minlength=len(found)) / len(rest) - found).sum() / 2)


def words(
    seed: int, fractions: list[float], per_class: int = 6, n: int = 400, length: int = 12, sign: float = 1.0
) -> Pool:
    """Texts of some words each, of a vocabulary of 600: half of a class's words come from its own 150, the others from
    all.
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(fractions), n, p=fractions)
    own = rng.integers(0, 150, (n, length)) + 150 * truth[:, None]
    drawn = np.where(rng.random((n, length)) < 0.5, own, rng.integers(0, 600, (n, length)))
    counts = np.zeros((n, 600))
    np.add.at(counts, (np.repeat(np.arange(n), length), drawn.ravel()), 1.0)
    counts /= np.linalg.norm(counts, axis=1, keepdims=True)
    counts[-1] *= sign
    return Pool.of(rows_of(counts), truth, per_class)


def clusters(
    seed: int, fractions: list[float], distance: float = 3.0, per_class: int = 6, n: int = 300, spread: float = 1.0
) -> Pool:
    """A normal cluster of each class in ten dimensions, the last of them constant, of lengths from 1 to 5."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(fractions), n, p=fractions)
    centres = rng.standard_normal((len(fractions), 10))
    centres *= distance / np.linalg.norm(centres[0] - centres[-1])
    X = (centres[truth] + spread * rng.standard_normal((n, 10))) * np.linspace(1, 5, 10) + 2.0
    X[:, -1] = 1.5
    return Pool.of(rows_of(X), truth, per_class)


def rings(seed: int, share: float = 0.5, per_class: int = 8, n: int = 300, scale: float = 1.0) -> Pool:
    """A ring around another, in a plane of ten features, and noise; ``share`` of the documents in the outer one."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(np.int64)
    angle = 2 * np.pi * rng.random(n)
    radius = np.where(truth == 1, 2.0, 1.0)
    plane = np.linalg.qr(np.random.default_rng(9).standard_normal((10, 2)))[0].T
    dense = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) @ plane + 0.03 * rng.standard_normal(
        (n, 10)
    )
    return Pool.of(rows_of(scale * dense), truth, per_class)


def selection_data_of(data: Pool) -> SelectionData:
    order, n_labeled = np.argsort(data.class_indices < 0, kind="stable"), int((data.class_indices >= 0).sum())
    class_indices = data.class_indices[order][:n_labeled]
    return SelectionData.of(data.rows.taken(order), class_indices, classes_of(data), 0)


def kernel_of(selection_data: SelectionData) -> Kernel:
    return resolve_kernel("rbf", "median", 3, 0.0, selection_data.scaled.rows)


def blocks(seed: int, clear: tuple[float, float], n_classes: int = 2) -> tuple[SparseRows, NDArray[np.int64]]:
    """Dense rows in two blocks of length 1, in which classes are this far apart, and the classes."""
    generator = np.random.default_rng(seed)
    classes = generator.permutation(np.arange(N) % n_classes)
    parts = [generator.normal(size=(N, WIDTH)) + distance * np.eye(WIDTH)[classes] for distance in clear]
    values = np.hstack([part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts]).astype(np.float32)
    indptr = np.arange(N + 1, dtype=np.int64) * 2 * WIDTH
    return SparseRows(indptr, np.tile(np.arange(2 * WIDTH, dtype=np.uint32), N), values.ravel(), 2 * WIDTH), classes


def trained(
    clear: tuple[float, float] = (4.0, 4.0),
    *,
    n_classes: int = 2,
    labeled: int = 30,
    context: TrainingContext | None = None,
) -> Training:
    rows, classes = blocks(0, clear, n_classes)
    known = np.where(np.arange(N) < labeled, classes, -1)
    return train(
        TrainingTask(rows, known, list(range(n_classes)), "auto", {}, parts=PARTS),
        context or TrainingContext(threads=1),
    )
