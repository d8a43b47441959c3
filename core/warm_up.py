"""Warm-up: compiles all loops that trainings run, or loads them from Numba's cache."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms, weighed
from core.options.text import TextOptions
from core.registry import AUTO, OFFERED, Algorithm
from core.train import TrainingContext, TrainingTask, train

Part = tuple[str, int]
"""A part of the warm-up: training by an algorithm on rows of so many features, or reading text."""
WARMED: Sequence[Part] = [
    *((name, 2) for name in OFFERED),
    *((name, 16) for name in reversed(OFFERED)),
    ("text", 0),
]
"""All parts: on dense rows, then on sparse ones, whose loops are others. So two processes that begin at both ends
hardly ever compile the same loop."""
FIRST = [part for part in WARMED if part[0] in (AUTO.name, "svm", "tsvm", "da", "text")]
"""What most jobs run: two thirds of all that is compiled."""
REST = [part for part in WARMED if part not in FIRST]


def warming(parts: Sequence[Part] = WARMED) -> Iterator[None]:
    """Compile all that these run, or load it from the cache, in steps. Do it before forking: no job waits then."""
    for name, n_features in parts:
        yield from _training(OFFERED[name], n_features) if n_features else _reading_text()


def _reading_text() -> Iterator[None]:
    texts = TextRows.of([" ".join(f"w{word}" for word in range(6000))] * 2)  # the tables of words and terms grow
    terms = fit_terms(texts, TextOptions(), _unheard, threads=1)
    yield
    list(weighed(texts, terms, _unheard, threads=1))
    yield


def _training(offered: Algorithm, n_features: int) -> Iterator[None]:
    indices = np.arange(16, dtype=np.uint32) % np.uint32(n_features)
    rows = SparseRows(np.arange(17, dtype=np.int64), indices, np.ones(16, np.float32), n_features)
    # as what is read from a store is: to Numba that is another type
    for array in rows.csr:
        array.flags.writeable = False
    # an estimate is many solves: one is enough, which auto makes
    common = {"positive_fraction": "labeled"} if offered is not AUTO and offered.options.needs_fractions else {}
    for own, class_indices in product(offered.options.warm_up_options, ([0, 1, *[-1] * 14], [0, 1, 2, *[-1] * 13])):
        classes = range(max(class_indices) + 1)
        task = TrainingTask(rows, np.array(class_indices, np.int32), classes, offered.name, {**common, **own})
        train(task, TrainingContext(threads=1))
        yield


def _unheard(done: float, held: int) -> None:
    """Takes no notice of progress."""
