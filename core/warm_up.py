"""Warm-up: compiles all loops that trainings run, or loads them from Numba's cache."""

from collections.abc import Collection, Iterator
from itertools import product

import numpy as np

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms, weighed
from core.options.text import TextOptions
from core.registry import AUTO, OFFERED
from core.train import TrainingContext, TrainingTask, train

_TEXT = "text"
_MANY_WORDS = 6000
"""for which the tables of words and terms must grow"""
WARMED = (*(name for name in OFFERED if name != "kernel_svm"), "kernel_svm", _TEXT)
"""what can be warmed up: training by each algorithm, and reading text. The last two share the fewest loops with the
first, so two processes that begin at both ends hardly ever compile the same one."""
FIRST = (AUTO.name, "svm", "tsvm", "da", _TEXT)
"""what most jobs run: two thirds of all that is compiled"""


def warming(names: Collection[str] = WARMED) -> Iterator[None]:
    """Compile all that these run, or load it from the cache, in steps. Do it before forking: no job waits then."""
    if _TEXT in names:
        texts = TextRows.of([" ".join(f"w{word}" for word in range(_MANY_WORDS))] * 2)
        terms = fit_terms(texts, TextOptions(), _unheard, threads=1)
        yield
        list(weighed(texts, terms, _unheard, threads=1))
        yield
    for n_features in (2, 16):  # dense rows, then sparse ones
        indices = np.arange(16, dtype=np.uint32) % np.uint32(n_features)
        rows = SparseRows(np.arange(17, dtype=np.int64), indices, np.ones(16, np.float32), n_features)
        # as what is read from a store is: to Numba that is another type
        for array in rows.csr:
            array.flags.writeable = False
        for offered in (OFFERED[name] for name in names if name != _TEXT):
            # an estimate is many solves: one is enough, which auto makes
            common = {"positive_fraction": "labeled"} if offered is not AUTO and offered.options.needs_fractions else {}
            for own, class_indices in product(
                offered.options.warm_up_options, ([0, 1, *[-1] * 14], [0, 1, 2, *[-1] * 13])
            ):
                classes = range(max(class_indices) + 1)
                task = TrainingTask(rows, np.array(class_indices, np.int32), classes, offered.name, {**common, **own})
                train(task, TrainingContext(threads=1))
                yield


def _unheard(done: float, held: int) -> None:
    """Takes no notice of progress."""
