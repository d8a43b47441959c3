"""Engines: memory and mapped give the same bits, the cheapest that memory allows is taken, and mapped needs no more
than is said.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.documents.rows import MEMORY, FullRows, SparseRows
from core.engine.passes import Engine, Passes
from core.engine.requests import Adjoint, Cut, Product, Scores
from core.memory_estimate import RowsSize
from core.train import TrainingContext, TrainingTask, train
from storage.errors import JobTooLarge, StoreFull
from storage.store import Store
from tests.core.digests import dense, digest
from tests.core.problems import random_rows
from tests.stores import outcome_of, submit
from tests.waiting import HANG
from tests.workers.worker.attempts import with_settings
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.training import ChosenEngine, EngineChoice
from workers.worker.training_inputs import ScratchFiles

MIB = 2**20
OPTIONS: dict[str, dict[str, Any]] = {
    "svm": {"probabilities": True},
    "tsvm": {"positive_fraction": "labeled"},
    "da": {"positive_fraction": "labeled"},
    "cuts3vm": {"max_iterations": 5, "positive_fraction": "labeled"},
    "auto": {},
}


def sparse() -> SparseRows:
    rows = random_rows(np.random.default_rng(1), 150, 60, density=0.2)
    return rows._replace(values=np.abs(rows.values))


def task_of(rows: SparseRows, algorithm: str) -> TrainingTask:
    classes = np.arange(rows.n_rows) % 3
    return TrainingTask(
        rows, np.where(np.arange(rows.n_rows) % 13 == 0, classes, -1), ["a", "b", "c"], algorithm, OPTIONS[algorithm]
    )


@pytest.mark.parametrize("make", [sparse, lambda: dense(3, 120)], ids=["sparse", "dense"])
@pytest.mark.parametrize("algorithm", OPTIONS)
def test_mapped_rows_give_the_bits_of_rows_in_memory(tmp_path: Path, algorithm: str, make: Any) -> None:
    task = task_of(make(), algorithm)
    # nothing may stay in the page cache: parts are forgotten as soon as they are read
    mapped = Engine("mapped", ScratchFiles(tmp_path), 0)
    in_memory, from_files = (train(task, TrainingContext(threads=1, engine=engine)) for engine in (Engine(), mapped))
    assert digest(from_files) == digest(in_memory)
    assert not list(tmp_path.iterdir()), "files have no names, so that none can be left"


class _Told:
    """A PageCache that remembers its messages."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int, int]] = []

    def ahead(self, start: int, stop: int) -> None:
        self.said.append(("ahead", start, stop))

    def behind(self, start: int, stop: int) -> None:
        self.said.append(("behind", start, stop))


@pytest.mark.parametrize("full", [False, True])
def test_a_pass_reads_the_next_part_ahead_and_each_row_once(monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    monkeypatch.setattr("core.engine.parts._PART_NONZEROS", 200)
    monkeypatch.setattr("core.engine.passes._SERIAL", 0)
    rows = (
        FullRows.of(np.ones((150, 24), np.float32))
        if full
        else random_rows(np.random.default_rng(2), 150, 12, density=0.6)
    )
    told, n_columns = _Told(), rows.n_features + 1
    monkeypatch.setattr("core.engine.passes.PageCache", lambda rows, resident_bytes: told)
    passes = Passes(rows, 1, lambda: None)
    vector, weights, scores = np.ones(n_columns), np.ones(150), np.zeros(150)
    requests: list[Callable[[], object]] = [
        lambda: passes.product(Product(vector, weights, scores)),
        lambda: passes.products([Product(vector, weights, np.zeros(150)) for _ in range(3)]),
        lambda: passes.cut(Cut(vector, np.zeros(150), weights, scores)),
        lambda: passes.scores(Scores(vector, np.zeros(150), scores), alone=True),
        lambda: passes.adjoint(Adjoint(weights, np.zeros(n_columns))),
    ]
    for ask in requests:
        told.said.clear()
        ask()
        behind = [(start, stop) for kind, start, stop in told.said if kind == "behind"]
        ahead = [(start, stop) for kind, start, stop in told.said if kind == "ahead"]
        assert len(behind) > 2
        assert [0, *(stop for _, stop in behind)] == [*(start for start, _ in behind), 150]
        assert ahead == behind[1:], "each part but the first, one part before it is read"
    passes.close()


def choice_of(engine: Any, most: int, algorithm: str = "svm", store: Store | None = None) -> EngineChoice:
    request = type("Request", (), {"algorithm": algorithm, "options": {}, "text": None})
    return EngineChoice(request, 100, 2, 1, most, engine)  # type: ignore[arg-type]


SIZE = RowsSize(20_000, 20_000_000, 50_000)


def test_a_job_takes_the_cheapest_engine_that_its_memory_allows() -> None:
    assert choice_of("auto", 1000 * MIB).of(SIZE).name == "memory"
    assert choice_of("auto", 200 * MIB).of(SIZE).name == "mapped"
    assert choice_of("mapped", 1000 * MIB).of(SIZE).name == "mapped"
    assert choice_of("mapped", 2**40, "kernel_svm").of(SIZE).name == "memory"
    for engine in ("auto", "memory", "mapped"):
        with pytest.raises(JobTooLarge, match="train on fewer documents"):
            choice_of(engine, 66 * MIB).of(SIZE)
    with pytest.raises(JobTooLarge):
        choice_of("memory", 200 * MIB).of(SIZE)


@pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm", "cccp_tsvm", "ctsvm"])
def test_an_algorithm_that_holds_its_documents_says_so(algorithm: str) -> None:
    with pytest.raises(JobTooLarge, match=f"{algorithm} holds all documents in memory, where auto"):
        choice_of("auto", 200 * MIB, algorithm).of(SIZE)


def test_a_job_with_files_succeeds_and_its_report_says_so(context: WorkerContext, store: Store) -> None:
    reports = {}
    for engine in ("memory", "mapped"):
        id = submit(store)
        Attempts(with_settings(context, engine=engine)).run(id)
        outcome = outcome_of(store, id)
        assert outcome.report is not None
        reports[outcome.report.pop("engine")] = outcome.report
    assert reports["memory"] == reports["mapped"]


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StoreFull, match="cannot write the rows of a training"):
        ScratchFiles(tmp_path).zeros(10, np.float32)
    assert len(ScratchFiles(tmp_path).zeros(0, np.float32)) == 0


def test_a_process_that_memory_does_not_suffice_for_trains_from_files(tmp_path: Path) -> None:
    """In a process with memory limited to the estimate: rows in memory do not fit there, mapped ones do."""
    code = "import sys; from tests.workers.worker.scarce import main; main(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["refused"].startswith("the training would need up to ")
    assert told["memory"] == "MemoryError"
    assert told["mapped"] == "converged"


def test_the_engine_of_memory_needs_no_folder(store: Store) -> None:
    with ChosenEngine("memory", 0).opened(store, "jobs/x") as engine:
        assert engine.space is MEMORY
    with ChosenEngine("mapped", 5).opened(store, "jobs/x") as engine:
        values = engine.space.zeros(3, np.float32)
        values[1] = 2.0
    assert values.tolist() == [0.0, 2.0, 0.0], "an array outlives the folder of its file"
