"""Digests of all that trainings answer, as JSON.

``python -m tests.core.digests THREADS DOCUMENTS CLASSES``; see benchmarks.reproducibility.
"""

import hashlib
import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms
from core.options.text import TextOptions
from core.train import Training, TrainingContext, TrainingTask, train

ALGORITHMS: dict[str, dict[str, Any]] = {
    "svm": {"probabilities": True},
    "tsvm": {"probabilities": True},
    "da": {},
    "cuts3vm": {"max_iterations": 30},
    "kernel_svm": {"kernel": "poly", "coef0": 1.0},
    "ramp_svm": {"s": 0.5},
    "cccp_tsvm": {"gamma": "median"},
    "gradient_tsvm": {},
    "coregularized_svm": {},
    "s4vm": {"starts": 3},
    "lds": {},
    "kernel_da": {},
    "potts": {},
    "laplacian_svm": {"kernel": "rbf"},
    "laplacian_rls": {},
    "auto": {},
    "clusters": {"n_clusters": 3},
}
DENSE = ("svm", "tsvm", "da", "cuts3vm")
"""algorithms that are tried on dense documents, too; with many classes the first alone"""
_DIMENSIONS = 53
_WORDS, _OWN, _LENGTH = 3_000, 40, 60


def texts(n_classes: int, count: int) -> tuple[list[str], list[int]]:
    """Made-up texts of some classes: a fifth of their words are of their class, the others follow Zipf's law.

    Integers decide them alone.
    """
    rng = np.random.default_rng(n_classes)
    limits = np.cumsum(1_000_000 // np.arange(1, _WORDS + 1))
    classes = (np.arange(count) % n_classes).tolist()
    words = np.searchsorted(limits, rng.integers(0, limits[-1], (count, _LENGTH)), side="right")
    own = rng.integers(0, _OWN, (count, _LENGTH)) + _WORDS + _OWN * np.array(classes)[:, None]
    words = np.where(rng.integers(0, 5, words.shape) == 0, own, words)
    return [" ".join(f"w{word}" for word in text) for text in words.tolist()], classes


def dense(n_classes: int, count: int) -> SparseRows:
    """Made-up vectors of those classes, in order, one number of each larger.

    Integers decide them, and divisions that round correctly.
    """
    rng = np.random.default_rng(n_classes)
    numbers = rng.integers(1, 1000, (count, _DIMENSIONS))
    numbers[np.arange(count), np.arange(count) % n_classes] += 700
    values = (numbers / 1000).astype(np.float32)
    indices = np.tile(np.arange(_DIMENSIONS, dtype=np.uint32), count)
    return SparseRows(np.arange(0, values.size + 1, _DIMENSIONS), indices, values.reshape(-1), _DIMENSIONS)


def digests(threads: int, count: int, many: int) -> dict[str, str]:
    """By algorithm and number of classes, which is two or ``many``."""
    found = {}
    for n_classes in (2, many):
        written, classes = texts(n_classes, count)
        rows = TextRows.of(written)
        terms = fit_terms(rows, TextOptions(), lambda done, held: None)
        sparse = terms.read(rows).rows
        class_indices = np.where(np.arange(count) < 4 * n_classes + count // 20, classes, -1)
        for name, options in ALGORITHMS.items():
            task = TrainingTask(sparse, class_indices, range(n_classes), name, options)
            training = train(task, TrainingContext(threads=threads))
            found[f"{name}, {n_classes} classes"] = digest(training, terms.idf, sparse.values)
        for name in DENSE if n_classes == 2 else DENSE[:1]:
            task = TrainingTask(dense(n_classes, count), class_indices, range(n_classes), name, ALGORITHMS[name])
            found[f"{name}, {n_classes} classes, dense"] = digest(train(task, TrainingContext(threads=threads)))
    return found


def digest(training: Training, *more: NDArray[Any]) -> str:
    """Of weights, scores, labels, probabilities, report and trace; seconds alone are left out."""
    arrays, meta = training.model.to_arrays()
    given = hashlib.sha256()
    for array in (
        *arrays.values(),
        training.scores,
        training.model.labels_of(training.scores),
        training.probabilities,
        *more,
    ):
        given.update(np.ascontiguousarray(array).tobytes() if array is not None else b"none")
    trace = [[str(point.phase), *map(float.hex, map(float, point[1:5]))] for point in training.trace]
    given.update(
        json.dumps(
            [meta, trace, training.report, training.status, training.objective.hex(), training.passes.hex()],
            default=str,
        ).encode()
    )
    return given.hexdigest()[:16]


if __name__ == "__main__":
    print(json.dumps(digests(*map(int, sys.argv[1:]))))
