"""Warm-up: compiles all loops that trainings run, or loads them from Numba's cache."""

from collections.abc import Collection, Iterator
from itertools import product

import numpy as np

from core.documents.rows import SparseRows
from core.registry import AUTO, OFFERED
from core.train import TrainingContext, TrainingTask, train


def warming(algorithms: Collection[str] = tuple(OFFERED)) -> Iterator[None]:
    """Compile all that training by these algorithms runs, or load it from the cache, in steps. Do it before forking: no job waits then."""
    for n_features in (2, 16):  # dense rows, then sparse ones
        indices = np.arange(16, dtype=np.uint32) % np.uint32(n_features)
        rows = SparseRows(np.arange(17, dtype=np.int64), indices, np.ones(16, np.float32), n_features)
        # as what is read from a store is: to Numba that is another type
        for array in rows[:3]:
            array.flags.writeable = False
        for offered in (OFFERED[name] for name in algorithms):
            # an estimate is many solves: one is enough, which auto makes
            common = {"positive_fraction": "labeled"} if offered is not AUTO and offered.options.needs_fractions else {}
            for own, class_indices in product(offered.options.warm_up_options, ([0, 1, *[-1] * 14], [0, 1, 2, *[-1] * 13])):
                classes = range(max(class_indices) + 1)
                task = TrainingTask(rows, np.array(class_indices, np.int32), classes, offered.name, {**common, **own})
                train(task, TrainingContext(threads=1))
                yield


def warm_up() -> None:
    """All steps of ``warming``."""
    for _ in warming():
        pass
