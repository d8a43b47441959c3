"""The data of the kernel family's figures, as rows and labels, drawn by seed where the paper's draws are lost."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.base import rows_of
from benchmarks.data import load, tfidf
from core.documents.rows import SparseRows

BANANA_NOISE = 0.31
LABEL_NOISE = 0.1


class Draw(NamedTuple):
    """Documents of which some are labeled; the error is measured on the rest (Table 1.3)."""

    rows: SparseRows
    y: NDArray[np.int64]
    labeled: NDArray[np.int64]

    @property
    def unlabeled(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(len(self.y)), self.labeled)


class Split(NamedTuple):
    """Two classes, -1 and +1, to train on and to test on (Table 1.1)."""

    X: Any
    y: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]


@cache
def _whole(name: str) -> tuple[SparseRows, NDArray[np.int64]]:
    data = load(name)
    return rows_of(data.X), data.y.astype(np.int64)


def official_draws(name: str, labeled: str, count: int) -> list[Draw]:
    """The first draws that a set comes with."""
    return [Draw(*_whole(name), drawn.astype(np.int64)) for drawn in load(name).splits[labeled][:count]]


def coil_draws() -> list[Draw]:
    """Ten draws of 40 labels, two a class."""
    rows, y = _whole("coil20")
    return [Draw(rows, y, _some_of_each(y, 2, seed)) for seed in range(10)]


def _some_of_each(y: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.sort(np.concatenate([rng.choice(np.flatnonzero(y == label), count, replace=False) for label in np.unique(y)]))


def waveform(seed: int) -> Split:
    """Class 0 against the others, 4,000 rows to train on, 1,000 to test on."""
    data = load("waveform-generated")
    return _shuffled(data.X.toarray(), np.where(data.y == 0, 1, -1), 4000, seed)


def banana(seed: int) -> Split:
    """Two half circles (cos t, sin t) and (1 − cos t, 1/2 − sin t), t uniform in [0, π], with normal noise; 4,000 rows and 1,300."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(5300) < 0.5, 1, -1)
    t = rng.uniform(0, np.pi, len(y))
    X = y[:, None] * np.column_stack([np.cos(t), np.sin(t)]) + (y < 0)[:, None] * [1.0, 0.5] + BANANA_NOISE * rng.standard_normal((len(y), 2))
    return Split(X[:4000].astype(np.float32), y[:4000], X[4000:].astype(np.float32), y[4000:])


def usps_noise(seed: int) -> Split:
    """Zero against the other digits on the official split, a tenth of the training labels turned round."""
    clean = _usps()
    return clean._replace(y=_noisy(clean.y, seed))


@cache
def _usps() -> Split:
    data = load("usps")
    train, test, y = data.splits["train"], data.splits["test"], np.where(data.y == 0, 1, -1)
    return Split(data.X[train].toarray(), y[train], data.X[test].toarray(), y[test])


def _noisy(y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    turned = y.copy()
    turned[np.random.default_rng(seed).choice(len(y), round(LABEL_NOISE * len(y)), replace=False)] *= -1
    return turned


def adult(seed: int) -> Split:
    """The official split, for every seed."""
    data = load("adult-a9a")
    train, test, y = data.splits["train"], data.splits["test"], data.y.astype(np.int64)
    return Split(data.X[train], y[train], data.X[test], y[test])


def mnist(seed: int = 0, n_labeled: int = 1000) -> Draw:
    """All 10,000 images, of which some drawn at random are labeled."""
    rows, y = _whole("mnist-t10k")
    return Draw(rows, y, np.sort(np.random.default_rng(seed).choice(len(y), n_labeled, replace=False)))


@cache
def reviews(n_labeled: int = 1000, most: int = 12_500) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """TF-IDF of film reviews drawn at random, positive or not; the first ones are those to be labeled."""
    X, labels = tfidf("imdb-30k")
    chosen = np.random.default_rng(0).permutation(len(labels))[: n_labeled + most]
    return sp.csr_matrix(X[chosen]), np.where(labels[chosen] == "pos", 1, -1)


def _shuffled(X: Any, y: NDArray[Any], n_train: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    return Split(X[train], y[train].astype(np.int64), X[test], y[test].astype(np.int64))


def validation(split: Split, most: int) -> Split:
    """A split of at most so many training rows for the choice of hyper-parameters, two thirds to train on."""
    order = np.random.default_rng(99).permutation(len(split.y))[:most]
    part = 2 * len(order) // 3
    return Split(split.X[order[:part]], split.y[order[:part]], split.X[order[part:]], split.y[order[part:]])


def noisy_validation(seed: int) -> Split:
    """The same of USPS+N: as on its test rows, the labels that validate are not noisy."""
    order = np.random.default_rng(seed).permutation(len(_usps().y))
    shuffled = _usps()._replace(X=_usps().X[order], y=_usps().y[order])
    split = validation(shuffled, len(order))
    return split._replace(y=_noisy(split.y, seed))


DRAWS: dict[str, Callable[[], list[Draw]]] = {
    "g50c": lambda: official_draws("g50c", "labeled", 10),
    "pcmac": lambda: official_draws("pcmac", "labeled", 10),
    "coil20": coil_draws,
}
UNIVERSVM_SETS = ("ssl-g241c", "ssl-usps", "ssl-digit1")
SPLITS: dict[str, tuple[Callable[[int], Split], int]] = {
    "Waveform": (waveform, 10),
    "Banana": (banana, 10),
    "USPS+N": (usps_noise, 10),
    "Adult": (adult, 1),
}
"""a split by its seed, and how many are averaged"""
VALIDATION: dict[str, Callable[[], list[Split]]] = {
    "Waveform": lambda: [validation(waveform(0), 4000)],
    "Banana": lambda: [validation(banana(0), 4000)],
    "USPS+N": lambda: [noisy_validation(seed) for seed in range(3)],
    "Adult": lambda: [validation(adult(0), 6000)],
}
