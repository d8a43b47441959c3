"""Time and memory against the number of documents, up to RCV1's size; each run in a process of its own that maps its
data like a worker.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.base import apart, table
from benchmarks.data import text_like
from benchmarks.plots import Panel, draw
from benchmarks.running import status_bytes
from core.documents.rows import SparseRows
from core.progress import TracePoint
from tests.core.problems import rows_of

_SIZES = (12_500, 25_000, 50_000, 100_000, 200_000, 400_000, 804_414)
_FEATURES = 47_236
_LABELED = 1000
_REPEATS = 3
"""in one process: the first touch of new memory costs a virtual machine up to ten times what it costs later"""
_OPTIONS: dict[str, dict[str, Any]] = {
    "svm": {},
    "tsvm": {"positive_fraction": 0.35},
    "da": {"positive_fraction": 0.35},
}


def section(figure: Path) -> str:
    """The table, the slopes and the plot."""
    with tempfile.TemporaryDirectory() as folder:
        _spread(Path(folder))
        runs = {
            algorithm: [apart("benchmarks.scale", folder, algorithm, size) for size in _SIZES] for algorithm in _OPTIONS
        }
    _draw(runs, figure)
    lines = []
    for algorithm, measured in runs.items():
        seconds = [run["seconds"] for run in measured]
        at = dict(zip(_SIZES, measured, strict=True))
        ratio, memory = (
            at[_SIZES[-1]]["seconds"] / at[100_000]["seconds"],
            at[_SIZES[-1]]["peak"] / at[_SIZES[-1]]["csr"],
        )
        lines.append(
            [
                algorithm,
                *(f"{second:.2f}" for second in seconds),
                f"**{ratio:.1f}**",
                _verdict(ratio, 10),
                f"**{memory:.2f}**",
                _verdict(memory, 2.5),
            ]
        )
        lines[-1] += [
            f"{_slope(seconds):.2f}",
            f"{_slope([run['peak'] for run in measured]):.2f}",
            f"{max(run['silence'] for run in measured) * 1e3:.0f} ms",
        ]
    heads = [
        "seconds at rows",
        *(f"{size:,}" for size in _SIZES),
        "804,414 / 100,000",
        "≤ 10",
        "peak memory / float32 CSR",
        "≤ 2.5",
    ]
    heads += ["slope of time", "of memory", "longest silence"]
    note = (
        "`svm` with all rows labeled, `tsvm` and `da` with 1,000. Seconds are those of core.train.train, "
        "memory the largest resident set of its "
        "process (interpreter, libraries, mapped files and all), silence the longest time without a call of "
        "the observer. "
        f"Median of {_REPEATS} runs in one process."
    )
    return f"{note}\n\n{table(heads, lines)}\n![Time and memory against rows]({figure.name})\n"


def _verdict(value: float, bound: float) -> str:
    return "reached" if value <= bound else "MISSED"


def _slope(values: list[float]) -> float:
    """Of a straight line through the points in log-log."""
    return float(np.polyfit(np.log(_SIZES), np.log(values), 1)[0])


def _spread(folder: Path) -> None:
    data = text_like(_SIZES[-1], _FEATURES)
    rows = rows_of(data.X)
    for name, array in (("indptr", rows.indptr), ("indices", rows.indices), ("values", rows.values), ("y", data.y)):
        np.save(folder / name, array)


def _run(folder: Path, algorithm: str, size: int) -> dict[str, float]:
    from core.train import TrainingContext, TrainingTask, train
    from workers.worker.warm_up import warm_up

    warm_up()
    indptr = np.load(folder / "indptr.npy")[: size + 1]
    indices, values = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indices", "values"))
    class_indices = (np.load(folder / "y.npy")[:size] > 0).astype(np.int32)
    if algorithm != "svm":
        class_indices[_LABELED:] = -1
    rows = SparseRows(indptr, indices, values, _FEATURES)
    heard: list[float] = []

    def observer(_: TracePoint) -> bool:
        heard.append(time.perf_counter())
        return False

    seconds, silence = [], 0.0
    for _ in range(_REPEATS):
        heard[:] = [time.perf_counter()]
        training = train(
            TrainingTask(rows, class_indices, ["no", "yes"], algorithm, _OPTIONS[algorithm]),
            TrainingContext(observer=observer),
        )
        heard.append(time.perf_counter())
        seconds.append(heard[-1] - heard[0])
        silence = max(silence, *np.diff(heard))
    return {
        "seconds": float(np.median(seconds)),
        "silence": silence,
        "peak": status_bytes("VmHWM"),  # not ru_maxrss, which begins at that of the parent
        "csr": rows.n_nonzeros * 8 + indptr.nbytes,
        "objective": training.objective,
    }


def _draw(runs: dict[str, list[dict[str, float]]], figure: Path) -> None:
    times, peaks = {}, {}
    for algorithm, measured in runs.items():
        seconds, mebibytes = [run["seconds"] for run in measured], [run["peak"] / 2**20 for run in measured]
        times[f"{algorithm}, slope {_slope(seconds):.2f}"] = _SIZES, seconds
        peaks[f"{algorithm}, slope {_slope(mebibytes):.2f}"] = _SIZES, mebibytes
    peaks["float32 CSR"] = _SIZES, [run["csr"] / 2**20 for run in next(iter(runs.values()))]
    panels = [
        Panel("Training time", times, "documents", "seconds", logarithmic=True),
        Panel("Peak resident memory", peaks, "documents", "MiB", logarithmic=True),
    ]
    draw(panels, figure)


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
