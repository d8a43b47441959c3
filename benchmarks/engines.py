"""Costs of the engines by the number of documents: ``python -m benchmarks.engines [documents …]`` measures and writes
``docs/engines.md``.

Every run is a process of its own, over files that were made in pieces. ``python -m benchmarks.engines --limited
documents`` trains the transductive SVM in processes that may allocate 2 GiB.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.base import apart, machine, table, write
from benchmarks.running import status_bytes
from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.engine.passes import Engine
from core.engine.requests import Product
from core.memory_estimate import RowsSize
from core.progress import TracePoint
from core.train import TrainingContext, TrainingTask, train
from storage.errors import JobTooLarge
from storage.repositories.datasets.files.npy import NpyWriter, open_array
from storage.store import open_store
from workers.worker.training import EngineChoice
from workers.worker.training_inputs import ScratchFiles

_LENGTH, _FEATURES, _PIECE, _LABELED = 76, 47_236, 100_000, 1_000
_SIZES = (100_000, 800_000)
_PASSES = 7
_LIMIT = 2 << 30
_LIMITED_SECONDS = 2700
_ENGINES = ("memory", "mapped", "cluster")
_NOTES = Path(__file__).parent / "engines-notes.md"


def spread(folder: Path, n_rows: int) -> None:
    """Rows of 76 terms, common ones more often, in files. One term in eight is of the class of the row."""
    kinds = {"indptr": "<i8", "indices": "<u4", "values": "<f4"}
    files = {name: NpyWriter(folder / f"{name}.npy", kind) for name, kind in kinds.items()}
    files["indptr"].append(np.arange(n_rows + 1) * _LENGTH)
    for start in range(0, n_rows, _PIECE):
        rng, count = np.random.default_rng(start), min(_PIECE, n_rows - start)
        drawn = (rng.random((count, _LENGTH), np.float32) ** 3 * (_FEATURES - 2 * _LENGTH)).astype(np.uint32)
        drawn[:, ::8] += (drawn[:, ::8] + np.arange(start, start + count, dtype=np.uint32)[:, None]) % 2
        drawn.sort(axis=1)
        files["indices"].append((drawn + np.arange(_LENGTH, dtype=np.uint32)).reshape(-1))
        files["values"].append(((0.5 + rng.random((count, _LENGTH), np.float32)) / np.float32(9)).reshape(-1))
    for file in files.values():
        file.finish()


def rows_in(folder: Path) -> SparseRows:
    """The rows of ``spread``, mapped."""
    indptr, indices, values = (open_array(folder / f"{name}.npy") for name in ("indptr", "indices", "values"))
    return SparseRows(indptr, indices, values, _FEATURES)


@contextmanager
def engine_of(name: str, folder: Path, workers: int = 2) -> Iterator[Engine]:
    """An engine; a cluster has so many workers on this machine."""
    if name != "cluster":
        yield Engine() if name == "memory" else Engine("mapped", ScratchFiles(folder))
        return
    from benchmarks.cluster import Cluster
    from workers.cluster.engine import ClusterEngine, ClusterStore, connected

    url = f"file://{folder}/store"
    with Cluster(workers) as cluster, connected(cluster.url, cluster.files) as client:
        yield ClusterEngine(client, ScratchFiles(folder), ClusterStore(open_store(url), url, "benchmark"))


def passes(name: str, folder: Path) -> dict[str, float]:
    """Seconds of the copy of the rows, and of a product with all of them, for one right-hand side and for eight, by the
    clock and of processors; bytes sent to shards a pass; the load of the machine before."""
    load, rows = os.getloadavg()[0], rows_in(folder)
    n_rows, rng = rows.n_rows, np.random.default_rng(0)
    vectors = [rng.random(_FEATURES + 1) for _ in range(8)]
    requests = [Product(vector, np.ones(n_rows), np.zeros(n_rows)) for vector in vectors]
    with engine_of(name, folder) as engine:
        began = time.perf_counter()
        answers = engine.over(gathered(rows, np.arange(n_rows), space=engine.space), None, lambda: None)
        found: dict[str, float] = {"copy": time.perf_counter() - began}
        for kind, several in (("one", requests[:1]), ("eight", requests)):
            seconds, used = [], _processor_seconds()
            for _ in range(_PASSES):
                began, sent = time.perf_counter(), getattr(answers, "bytes_sent", 0)
                answers.products(several)
                seconds.append(time.perf_counter() - began)
            found |= {kind: min(seconds), f"{kind}_sent": getattr(answers, "bytes_sent", 0) - sent}
            found[f"{kind}_used"] = (_processor_seconds() - used) / _PASSES
        answers.close()
    return found | {"allocated": status_bytes("RssAnon"), "load": load}


def task_of(rows: SparseRows) -> TrainingTask:
    """The transductive SVM with 1,000 labels."""
    class_indices = np.where(np.arange(rows.n_rows) < _LABELED, np.arange(rows.n_rows) % 2, -1)
    return TrainingTask(rows, class_indices, ["no", "yes"], "tsvm", {"positive_fraction": 0.5})


def training(name: str, folder: Path, limit: int = 0, seconds: float = 1e9) -> dict[str, Any]:
    """The transductive SVM with 1,000 labels: seconds, passes and its end. ``limit`` bounds the allocations of every
    process; a cluster then has four workers.
    """
    task = task_of(rows_in(folder))

    def observer(_: TracePoint) -> bool:
        return time.perf_counter() - began > seconds

    if limit:
        # before the processes of the cluster begin, which take it over
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with engine_of(name, folder, 4 if limit else 2) as engine:
        began, used = time.perf_counter(), _processor_seconds()
        try:
            done = train(task, TrainingContext(observer=observer, engine=engine))
        except MemoryError:
            return {"status": "MemoryError"}
        took, used = time.perf_counter() - began, _processor_seconds() - used
    return {
        "seconds": took,
        "used": used,
        "load": os.getloadavg()[0],
        "passes": done.passes,
        "status": done.status.value,
        "objective": done.objective,
        "allocated": status_bytes("RssAnon"),
    }


def refused(n_rows: int) -> str:
    """The refusal of a job with this many documents that may have 2 GiB, and must hold them in memory."""
    request = type("Request", (), {"algorithm": "tsvm", "options": {"positive_fraction": 0.5}, "text": None})
    choice = EngineChoice(request, _LABELED, 2, 2, _LIMIT, "memory")  # type: ignore[arg-type]
    try:
        choice.of(RowsSize(n_rows, n_rows * _LENGTH, _FEATURES))
    except JobTooLarge as error:
        return str(error)
    return ""


def _processor_seconds() -> float:
    """Seconds of processors that this process and its children have used."""
    own = psutil.Process()
    return sum(
        process.cpu_times().user + process.cpu_times().system for process in (own, *own.children(recursive=True))
    )


def page(sizes: list[int]) -> str:
    """The page, with the measurements."""
    lines, trained = [], []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            spread(Path(name), size)
            for engine in _ENGINES:
                own = apart("benchmarks.engines", "--run", "passes", engine, name)
                row = [f"{size:,}", engine, f"{own['load']:.1f}"]
                row += [f"{own[each]:.2f}" for each in ("copy", "one", "one_used", "eight", "eight_used")]
                lines.append([*row, *(f"{own[each] / 1e6:,.1f}" for each in ("one_sent", "eight_sent", "allocated"))])
                if size <= _SIZES[0]:
                    done = apart("benchmarks.engines", "--run", "training", engine, name)
                    trained.append(
                        [
                            f"{size:,}",
                            engine,
                            f"{done['seconds']:.1f}",
                            f"{done['passes']:.0f}",
                            f"{done['objective']:.17g}",
                        ]
                    )
    heads = [
        "documents",
        "engine",
        "load",
        "s copy",
        "s a pass",
        "CPU s",
        "s a pass of eight",
        "CPU s",
        "MB sent a pass",
        "of eight",
        "MB allocated",
    ]
    command = " ".join(["python -m benchmarks.engines", *map(str, sizes)])
    made = f"Made by `{command}` on:\n{machine()}.\n\n{table(heads, lines)}\n"
    if trained:
        made += (
            "\nA training (`tsvm`, 1,000 "
            f"labels):\n\n{table(['documents', 'engine', 's', 'passes', 'objective'], trained)}"
        )
    return _NOTES.read_text().replace("<!-- measured -->\n", made)


def main(arguments: list[str]) -> None:
    """Measure, print, write."""
    match arguments:
        case ["--run", "passes", engine, folder]:
            print(json.dumps(passes(engine, Path(folder))))
        case ["--run", "training", engine, folder]:
            print(json.dumps(training(engine, Path(folder))))
        case ["--run", "limited", engine, folder, seconds]:
            print(json.dumps(training(engine, Path(folder), _LIMIT, float(seconds))))
        case ["--limited", count, *engines]:
            with tempfile.TemporaryDirectory() as name:
                spread(Path(name), int(count))
                print(refused(int(count)))
                for engine in engines or ("memory", "mapped"):
                    print(
                        engine,
                        apart("benchmarks.engines", "--run", "limited", engine, name, _LIMITED_SECONDS),
                        flush=True,
                    )
        case _:
            write("engines.md", page([int(each) for each in arguments] or list(_SIZES)))


if __name__ == "__main__":
    main(sys.argv[1:])
