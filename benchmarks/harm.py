"""Harms a cluster in the middle of trainings: ``python -m benchmarks.harm`` writes the section *A cluster under harm*
of ``docs/scale.md``.

The same training again and again, each time with one harm at a random pass: a worker is killed, stopped for a while, or
added; or the scheduler is killed with all that it started, and begins anew, upon which the attempt is made again. The
bits must be those of memory.
"""

import os
import random
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import psutil

from benchmarks.base import machine, options, put_section, table
from benchmarks.cluster import Cluster
from benchmarks.engines import rows_in, spread, task_of
from core.documents.rows import SparseRows
from core.engine.passes import Engine, Passes
from core.progress import Checkpoint
from core.train import TrainingContext, TrainingTask, train
from storage.errors import ClusterUnavailable
from storage.store import open_store
from tests.core.digests import digest
from workers.cluster.engine import ClusterEngine, ClusterPasses, ClusterStore, connected
from workers.worker.training_inputs import ScratchFiles

_HARMS = ("none", "worker killed", "worker stopped", "worker added", "scheduler killed")
_STOP_SECONDS, _MORE_SECONDS = 30.0, 10.0


class Harm(NamedTuple):
    """A fault in the middle of a training."""

    kind: str
    at: int
    """number of the pass"""
    delay: float
    """seconds after it has begun"""


class HarmedEngine(ClusterEngine):
    """An engine that counts passes, and does something in one of them."""

    def __init__(self, *given: Any, harm: Harm, act: Callable[[], None]) -> None:
        super().__init__(*given)
        self.passes, self._harm, self._act = 0, harm, act

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Passes:
        """See Engine."""
        answers = super().over(rows, threads, checkpoint)
        if isinstance(answers, ClusterPasses):
            ask = answers._ask

            def counted(*given: Any) -> Any:
                self.passes += 1
                if self.passes == self._harm.at:
                    Timer(self._harm.delay, self._act).start()
                return ask(*given)

            answers._ask = counted  # type: ignore
        return answers


class Run(NamedTuple):
    """One training under harm."""

    harm: Harm
    seconds: float
    digest: str
    passes: int
    attempts: int
    load: float


def run(task: TrainingTask, folder: Path, harm: Harm) -> Run:
    """Train, on a cluster of its own, with a harm in the middle."""
    cluster, workers = Cluster(2), list[psutil.Process]()

    def act() -> None:
        match harm.kind:
            case "worker killed":
                workers[0].kill()
            case "worker stopped":
                workers[0].suspend()
                Timer(_STOP_SECONDS, lambda: _resumed(workers[0])).start()
            case "worker added":
                cluster.add()
            case "scheduler killed":
                cluster.kill()

    load, attempts, url = os.getloadavg()[0], 0, f"file://{folder}/store"
    with cluster:
        workers += cluster.workers()
        began = time.perf_counter()
        while True:
            attempts += 1
            with suppress(ClusterUnavailable), connected(cluster.url, cluster.files) as client:
                stored = ClusterStore(open_store(url), url, f"harm/{secrets.token_hex(4)}")
                own = harm if attempts == 1 else harm._replace(at=0)
                engine = HarmedEngine(client, ScratchFiles(folder), stored, harm=own, act=act)
                done = train(task, TrainingContext(engine=engine))
                return Run(harm, time.perf_counter() - began, digest(done), engine.passes, attempts, load)
            # whoever keeps processes running starts it again
            cluster.start()


def _resumed(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):  # it was replaced
        process.resume()


@contextmanager
def documents(count: int) -> Iterator[tuple[TrainingTask, Path]]:
    """So many documents of 76 terms, in files that end with the block."""
    with tempfile.TemporaryDirectory() as name:
        spread(Path(name), count)
        yield task_of(rows_in(Path(name))), Path(name)


def section(count: int, rounds: int, seed: int, memory: str, runs: list[Run]) -> str:
    """The section."""
    undisturbed = [run.seconds for run in runs if run.harm.kind == "none"]
    rows = [
        [
            run.harm.kind,
            run.harm.at or "",
            f"{run.seconds:.1f}",
            f"{run.seconds - max(undisturbed):+.1f}",
            run.attempts,
            "same" if run.digest == memory else "OTHER",
            f"{run.load:.1f}",
        ]
        for run in runs
    ]
    return (
        "## A cluster under harm\n\n`halfmoon cluster` with two workers, and a training (`tsvm`, 1,000 "
        f"labels, {count:,} documents of 76 terms), "
        "which is harmed once, at a random moment of a random pass. A worker that is stopped goes on after "
        "30 s. The scheduler is killed with its "
        "workers and started again, and the attempt is made again. Bits are those of the "
        "weights, labels and trace of the same training in memory.\n\n"
        f"Made by `python -m benchmarks.harm --documents {count} --rounds {rounds} --seed {seed}` on: {machine()}.\n\n"
        + table(["harm", "at pass", "seconds", "beside the slower undisturbed", "attempts", "bits", "load"], rows)
        + f"\nA training has {max(run.passes for run in runs)} passes. Load is the machine's when the training began. "
        f"A worker that is silent is replaced after eight to nine seconds; "
        f"{_MORE_SECONDS:.0f} seconds beside the reading of its parts are allowed.\n"
    )


def main() -> int:
    """The exit code says whether all bits were the same as in memory."""
    given = options(__doc__, documents=100_000, rounds=2, seed=1)
    rng, runs = random.Random(given.seed), list[Run]()
    with documents(given.documents) as (task, folder):
        memory = digest(train(task, TrainingContext(engine=Engine())))
        for kind in _HARMS * given.rounds:
            at = rng.randrange(2, max(3, min(run.passes for run in runs))) if runs and kind != "none" else 0
            runs.append(run(task, folder, Harm(kind, at, rng.random() / 5)))
            print(runs[-1], flush=True)
    runs.sort(key=lambda run: _HARMS.index(run.harm.kind))
    put_section("scale.md", section(given.documents, given.rounds, given.seed, memory, runs))
    return int(any(run.digest != memory for run in runs))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
