"""A cluster on one machine: a scheduler, and workers as processes that are started again when they die."""

import asyncio
import signal
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
from distributed import LocalCluster, Scheduler
from distributed.core import rpc
from distributed.metrics import time
from distributed.scheduler import WorkerState
from tornado.ioloop import PeriodicCallback

from workers.cluster.address import NO_TLS, TlsFiles, security_of, throw_away_files

_SILENT_SECONDS = 8.0
"""seconds after which a worker that does not answer is replaced; one that compiles on a busy machine was found silent
for five"""
_LATE_SECONDS = 3.0
"""seconds between two looks, of which more mean that this process had no time itself"""
_LAST_SECONDS = 1.0
"""seconds for its process to end by itself"""
_NANNY_SECONDS = 3.0
"""seconds for the process that watches it to end it"""
CONFIG: dict[str, Any] = {
    # the watch of this module does the same, and blames nobody for what this process has not heard for want of time
    "distributed.scheduler.worker-ttl": None,
    # the process that watches a worker begins another, however long that takes: Dask gives both up when there is none
    # after a quarter of a minute
    "distributed.deploy.lost-worker-timeout": "52 weeks",
    # a worker that asks a dead one for what it had asks elsewhere after so long
    "distributed.comm.timeouts.connect": "10 s",
    "distributed.scheduler.no-workers-timeout": "60 s",
    "distributed.scheduler.allowed-failures": 5,
    # a shard that is taken over must be read again
    "distributed.scheduler.work-stealing": False,
    # a vector that two workers have is one that both need
    "distributed.scheduler.active-memory-manager.start": False,
    # no pages: they would answer without a certificate
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # what is mapped leaves memory by itself
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    # fifty looks at the clock a second would cost processor time while nothing is done
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.system-monitor.interval": "5 s",
    # what a pass frees is what the next one takes: given back to the system, its pages would be cleared anew each time
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}


def local_cluster(host: str, port: int, workers: int, files: TlsFiles, *, processes: bool = True) -> LocalCluster:
    """A cluster that listens on an address; raises CannotStart where one of the files is not there.

    Made under ``CONFIG``.
    """
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=processes,
        host=host,
        scheduler_port=port,
        protocol="tls://",
        security=security_of(f"tls://{host}:{port}", files),
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        memory_limit=0,
    )
    assert cluster.loop is not None
    assert cluster.scheduler is not None
    cluster.loop.add_callback(_SilenceWatch(cluster.scheduler).start)
    return cluster


class _SilenceWatch:
    """Looks each second for workers that are silent, until the scheduler ends."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._looked, self._heard = scheduler, time(), time()

    def start(self) -> None:
        """Begin; called in the loop of the scheduler."""
        self._scheduler.periodic_callbacks["silence"] = look = PeriodicCallback(self._look, 1000)
        look.start()

    async def _look(self) -> None:
        now = time()
        if (
            now - self._looked > _LATE_SECONDS
        ):  # it was the scheduler that was stopped, and has not yet heard what the workers say
            self._heard = now
        silent = [
            worker
            for worker in self._scheduler.workers.values()
            if now - max(worker.last_seen, self._heard) > _SILENT_SECONDS
        ]
        await asyncio.gather(*map(self._replace, silent))
        self._looked = time()

    async def _replace(self, worker: WorkerState) -> None:
        """End the process of a worker; the one that watches it starts another."""
        with suppress(OSError, TimeoutError):
            if worker.nanny:
                async with rpc(worker.nanny, connection_args=self._scheduler.connection_args) as nanny:
                    await asyncio.wait_for(nanny.kill(timeout=_LAST_SECONDS, reason="silent"), _NANNY_SECONDS)
                    return
        await self._scheduler.remove_worker(worker.address, stimulus_id=f"silent-{time()}")


def run_cluster(host: str, port: int, workers: int, files: TlsFiles) -> int:
    """Run a cluster until a signal ends it; returns the exit code.

    Without files it makes some, which are removed in the end.
    """
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with tempfile.TemporaryDirectory(prefix="halfmoon-cluster-") as folder:
        if files == NO_TLS:
            files = throw_away_files(Path(folder))
        with dask.config.set(CONFIG), local_cluster(host, port, workers, files) as cluster:
            names = (f"HALFMOON_CLUSTER_{name.upper()}={path}" for name, path in files._asdict().items())
            settings = " ".join((f"HALFMOON_CLUSTER={cluster.scheduler_address}", *names))
            print(f"{workers} workers; set {settings}", flush=True)
            ended.wait()
    return 0
