"""Dense vectors: cost of a training on 100,000 of 768 numbers, beside scikit-learn's linear models; each in a process
of its own.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.base import apart, table, timed
from benchmarks.running import forget_peak, memory, peak_memory, service

_ROWS, _FEATURES, _LABELED = 100_000, 768, 1000
_BYTES = 4 * _ROWS * _FEATURES
_MOST = 2.5
_REPEATS = 3
_DISTANCE = 0.05
"""standard deviation of a number of the centre of each class, where that of the numbers is 1"""
_RIVALS = {"LinearSVC": "LinearSVC", "logistic regression": "LogisticRegression"}
_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "svm, all labeled": ("svm", {}),
    "svm, probabilities": ("svm", {"probabilities": True}),
    "tsvm, 1,000 labeled": ("tsvm", {"positive_fraction": "labeled"}),
    "tsvm, class fractions estimated": ("tsvm", {}),
    "auto, 1,000 labeled": ("auto", {}),
}


def section() -> str:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        X, classes = _blobs()
        np.save(Path(folder) / "X", X)
        np.save(Path(folder) / "indices", np.tile(np.arange(_FEATURES, dtype=np.uint32), _ROWS))
        np.save(Path(folder) / "classes", classes)
        lines = [_line(name, apart("benchmarks.vectors", folder, name)) for name in (*_RIVALS, *_CASES)]
        jobs = [
            [name, f"**{_job(X, classes, name) / _BYTES:.2f}**", f"≤ {_MOST}"]
            for name in ("svm, all labeled", "tsvm, 1,000 labeled")
        ]
    note = (
        f"{_ROWS:,} × {_FEATURES} numbers of two classes, float32: {_BYTES / 1e6:.0f} MB. The whole of "
        "core.train.train from the files of a dataset, "
        f"the whole of fit from an array in memory. Median of {_REPEATS} in one process. Memory is the "
        "largest resident set, beyond that of the "
        "process before it has the vectors, as a share of those bytes."
    )
    heads = ["", "seconds", "of the processor", "memory", "to reach", ""]
    told = "The same of the process that runs a job of the service, beyond what it has of its worker:"
    return f"{note}\n\n{table(heads, lines)}\n{told}\n\n{table(['job', 'memory', 'to reach'], jobs)}"


def _blobs() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors of norm 1, as encoders make them, around the centres of two classes."""
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.arange(_ROWS) % 2)
    centres = (_DISTANCE * rng.standard_normal((2, _FEATURES))).astype(np.float32)
    X = rng.standard_normal((_ROWS, _FEATURES), np.float32) + centres[classes]
    return X / np.linalg.norm(X, axis=1, keepdims=True), classes


def _line(name: str, run: dict[str, float]) -> list[str]:
    share = run["bytes"] / _BYTES
    verdict = ["", ""] if name in _RIVALS else [f"≤ {_MOST}", "reached" if share <= _MOST else "MISSED"]
    return [name, f"{run['seconds']:.2f}", f"{run['processor_seconds']:.2f}", f"**{share:.2f}**", *verdict]


def _run(folder: Path, name: str) -> dict[str, float]:
    process, classes = psutil.Process(), np.load(folder / "classes.npy")
    fit = _rival(name) if name in _RIVALS else _ours(name)
    before = memory(process)
    forget_peak(process)
    timing = timed(fit(folder, classes), _REPEATS, warm_ups=0)[1]
    return {
        "seconds": timing.median,
        "processor_seconds": float(np.median(timing.processor_seconds)),
        "bytes": peak_memory(process) - before,
    }


def _rival(name: str) -> Callable[[Path, NDArray[np.int64]], Callable[[], Any]]:
    from sklearn import linear_model, svm

    model = getattr(svm if name == "LinearSVC" else linear_model, _RIVALS[name])()
    model.fit(np.eye(4, dtype=np.float32), [0, 1, 0, 1])  # what is loaded with the first is not counted
    return lambda folder, classes: partial(model.fit, np.load(folder / "X.npy"), classes)


def _ours(name: str) -> Callable[[Path, NDArray[np.int64]], Callable[[], Any]]:
    from core.documents.rows import SparseRows
    from core.train import TrainingTask, train
    from workers.worker.warm_up import warm_up

    warm_up()
    algorithm, options = _CASES[name]

    def prepared(folder: Path, classes: NDArray[np.int64]) -> Callable[[], Any]:
        values, indices = (
            np.load(folder / "X.npy", mmap_mode="r").reshape(-1),
            np.load(folder / "indices.npy", mmap_mode="r"),
        )
        rows = SparseRows(np.arange(_ROWS + 1, dtype=np.int64) * _FEATURES, indices, values, _FEATURES)
        return partial(train, TrainingTask(rows, _labels(name, classes), ["no", "yes"], algorithm, options))

    return prepared


def _labels(name: str, classes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Class indices, −1 where a case has no label."""
    n_labeled = _ROWS if _CASES[name][0] == "svm" else _LABELED
    return np.where(np.arange(_ROWS) < n_labeled, classes, -1).astype(np.int32)


def _job(X: NDArray[np.float32], classes: NDArray[np.int64], name: str) -> int:
    """Bytes that the process of a job held at most, beyond its worker's at the start."""
    algorithm, options = _CASES[name]
    labels = _labels(name, classes)
    with tempfile.TemporaryDirectory() as folder, service(Path(folder) / "data") as running:
        body = Path(folder) / "X.npz"
        np.savez(body, X=X, labels=labels, labeled=labels >= 0)
        dataset = running.dataset(body.read_bytes())
        before, peak = memory(running.worker), 0
        job = running.post(
            "/v1/jobs", {"dataset": dataset, "model": "vectors", "algorithm": algorithm, "options": options}
        )["id"]
        while (state := running.state(job)) in ("queued", "running"):
            with suppress(psutil.NoSuchProcess, FileNotFoundError):
                process = running.attempt
                peak = peak if process is None else max(peak, peak_memory(process))
        if state != "succeeded":
            raise RuntimeError(f"job {job} is {state}")
    return peak - before


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), sys.argv[2])))
