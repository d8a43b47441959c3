"""A training in a process with memory limited to its estimate: by RLIMIT_DATA, which counts allocations, and no mapped
files.
"""

import json
import resource
from pathlib import Path

import numpy as np

from core.documents.rows import SparseRows
from core.engine.passes import Engine
from core.memory_estimate import RowsSize, training_bytes
from core.options.base import TrainingSize
from core.options.linear import SvmOptions
from core.train import TrainingContext, TrainingTask, train
from storage.errors import JobTooLarge
from workers.worker.training import EngineChoice
from workers.worker.training_inputs import ScratchFiles

N_ROWS, LENGTH, STRIDE = 12_000, 1_000, 13


def rows_in(space: ScratchFiles) -> SparseRows:
    """Rows of a thousand nonzeros each; the first value tells the classes apart."""
    indices, values = space.zeros(N_ROWS * LENGTH, np.uint32), space.zeros(N_ROWS * LENGTH, np.float32)
    for row in range(N_ROWS):
        own = slice(row * LENGTH, (row + 1) * LENGTH)
        indices[own] = np.arange(LENGTH) * STRIDE + row % STRIDE
        values[own] = 0.03
        values[row * LENGTH] = row % 2
    return SparseRows(np.arange(0, N_ROWS * LENGTH + 1, LENGTH), indices, values, LENGTH * STRIDE)


def allocated() -> int:
    """Bytes that count against the limit."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    return int(line.split()[1]) * 1024


def main(folder: str) -> None:
    """Print how each engine ends."""
    space = ScratchFiles(Path(folder))
    small = TrainingTask(
        SparseRows(np.arange(3), np.zeros(2, np.uint32), np.ones(2, np.float32), 1),
        np.array([0, 1]),
        ["a", "b"],
        "svm",
        {},
    )
    train(small, TrainingContext(threads=1))  # what is loaded with the first is not counted
    rows = rows_in(space)
    task = TrainingTask(rows, np.arange(N_ROWS) % 2, ["a", "b"], "svm", {})
    size = TrainingSize(N_ROWS, N_ROWS, rows.n_nonzeros, rows.n_features, 2)
    most, told = training_bytes(SvmOptions(), size, "mapped"), {}
    request = type("Request", (), {"algorithm": "svm", "options": {}, "text": None})
    try:
        size_of_rows = RowsSize(N_ROWS, rows.n_nonzeros, rows.n_features)
        EngineChoice(request, N_ROWS, 2, 1, most, "memory").of(size_of_rows)  # type: ignore[arg-type]
    except JobTooLarge as error:
        told["refused"] = str(error)
    limit = allocated() + most
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    for engine in (Engine(), Engine("mapped", space)):
        try:
            told[engine.name] = train(task, TrainingContext(threads=1, engine=engine)).status.value
        except MemoryError:
            told[engine.name] = "MemoryError"
    print(json.dumps(told))
