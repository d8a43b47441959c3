"""Blocks of columns that a selection learns from: all features or, of documents of several parts, each part alone and
all side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.documents.space import MEMORY, Space
from core.engine.runner import Scheduler
from core.options.auto import AutoOptions
from core.problem.result import Linear, Result
from core.progress import TOGETHER
from core.selection.data import SelectionData
from core.selection.subsets import with_features
from core.watch import Watch


class Selecting(NamedTuple):
    """Documents and the task of a selection over them."""

    rows: SparseRows
    """the labeled ones first"""
    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,)"""
    classes: Sequence[str | int]
    options: AutoOptions
    given: NDArray[np.float64] | None
    """class fractions, shape (n_classes,), if they are known"""
    data_of: Callable[[SparseRows, bool], SelectionData]
    """the data of a selection over rows with some of the columns, centred or not; raises Stopped"""
    scheduler_of: Callable[[SparseRows], Scheduler]
    """what runs solvers over some rows"""
    watch: Watch
    """the checkpoint of work outside the solvers, which can end a part of it when its time is over"""
    parts: Mapping[str, NDArray[np.int64]] = {}
    """of documents of several parts the columns of each that has any, ascending, by name"""
    space: Space = MEMORY
    """where copies of the rows lie"""


class Block(NamedTuple):
    """Columns of the rows, and the data of a selection over them."""

    name: str
    """of the part, TOGETHER, or nothing where there is one block"""
    columns: NDArray[np.int64]
    """ascending"""
    data: SelectionData

    def on_original_features(self, result: Result) -> Result:
        """The result with a decision over the block's columns as they came."""
        scaled, decision = self.data.scaled, result.decision
        if isinstance(decision, Linear):
            return replace(result, decision=scaled.on_original(decision))
        # of label spreading or kernel ridge regression, whose kernels are of distances: what is taken off all rows does
        # not change them
        if scaled.equalised:
            return replace(result, decision=decision._replace(scales=scaled.scales))
        kernel, scale = decision.kernel, float(scaled.scales.max(initial=0.0))
        return replace(result, decision=decision._replace(kernel=kernel._replace(gamma=kernel.gamma * scale**2)))

    def over_all_columns(self, result: Result, n_features: int) -> Result:
        """The result with a decision over all columns instead of the block's; a kernel's has all of them already."""
        if not isinstance(result.decision, Linear):
            return result
        coefficients = np.zeros(n_features)
        coefficients[self.columns] = result.decision.coefficients
        return replace(result, decision=Linear(coefficients, result.decision.intercept))


def blocks_of(task: Selecting) -> list[Block]:
    """The blocks, the one of all columns last; raises Stopped."""
    every = np.arange(task.rows.n_features)
    if len(task.parts) < 2:
        return [Block("", every, task.data_of(task.rows, True))]
    return [_block(task, name, own) for name, own in task.parts.items()] + [_block(task, TOGETHER, every)]


def _block(task: Selecting, name: str, columns: NDArray[np.int64]) -> Block:
    kept = np.zeros(task.rows.n_features, bool)
    kept[columns] = True
    rows = task.rows if kept.all() else with_features(task.rows, kept, task.watch, task.space)
    data = task.data_of(rows, False)  # a part that a document lacks is zeros, which would be far from a centre
    return Block(name, columns, replace(data, phases=[phase._replace(part=name) for phase in data.phases]))
