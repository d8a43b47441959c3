"""Scores and labels of the kernel family on small sets, printed as JSON.

``python -m tests.core.kernel_scores THREADS``; see test_reproducibility.py.
"""

import json
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms
from core.options.text import TextOptions
from core.train import TrainingContext, TrainingTask, train
from tests.core.digests import texts
from tests.core.problems import rows_of

FRACTIONS = {"positive_fraction": "labeled"}
ALGORITHMS: dict[str, dict[str, Any]] = {"kernel_svm": {}, "ramp_svm": {}, "cccp_tsvm": FRACTIONS, "ctsvm": FRACTIONS}
VALUES: dict[str, dict[str, Any]] = {"given": {"C": 10.0, "gamma": "scale"}, "chosen": {}}
"""C and gamma; all else by default"""


def sets() -> Iterator[tuple[str, SparseRows, NDArray[np.int64]]]:
    """Name, documents and class indices of each set; a fifth of them are labeled."""
    written, classes = texts(2, 200)
    rows = TextRows.of(written)
    terms = fit_terms(rows, TextOptions(), lambda done, held: None)
    yield "text", terms.read(rows).rows, _labeled(np.array(classes))
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    dense = rng.standard_normal((200, 20)) + 0.8 * (2 * truth[:, None] - 1) * (np.arange(20) < 4)
    yield "clouds", rows_of(dense), _labeled(np.where(rng.random(200) < 0.1, 1 - truth, truth))
    images, digits = load_digits(n_class=4, return_X_y=True)
    yield "digits", rows_of(images[:200] / 16.0), _labeled(digits[:200])


def _labeled(classes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(np.arange(len(classes)) % 5 == 0, classes, -1)


def scores(threads: int) -> dict[str, dict[str, Any]]:
    """Scores, shape (n_unlabeled, n_columns), and labels of the unlabeled documents, by set, algorithm and values."""
    found = {}
    for name, rows, class_indices in sets():
        for (algorithm, options), (kind, values) in product(ALGORITHMS.items(), VALUES.items()):
            task = TrainingTask(
                rows, class_indices, range(int(class_indices.max()) + 1), algorithm, {**options, **values}
            )
            training = train(task, TrainingContext(threads=threads))
            labels = training.model.labels_of(training.scores)
            chosen = None if training.report is None else training.report.get("chosen")
            answer = {
                "scores": training.scores.tolist(),
                "labels": labels.tolist(),
                "status": training.status,
                "chosen": chosen,
            }
            found[f"{name}, {algorithm}, {kind}"] = answer
    return found


if __name__ == "__main__":
    print(json.dumps(scores(int(sys.argv[1]))))
