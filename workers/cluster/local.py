"""A cluster on one machine: a scheduler, and workers as processes that are started again when they die."""

import signal
import threading

import dask
from distributed import LocalCluster

from workers.cluster.address import NO_TLS, TlsFiles, security_of

CONFIG = {
    # a worker that is stopped, or cut off, is replaced after so long
    "distributed.scheduler.worker-ttl": "10 s",
    # a worker that asks a dead one for what it had asks elsewhere after so long
    "distributed.comm.timeouts.connect": "5 s",
    "distributed.scheduler.no-workers-timeout": "60 s",
    "distributed.scheduler.allowed-failures": 5,
    # a shard that is taken over must be read again
    "distributed.scheduler.work-stealing": False,
    # no pages: they would answer without a certificate
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # what is mapped leaves memory by itself
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
}


def local_cluster(host: str, port: int, workers: int, files: TlsFiles = NO_TLS, *, processes: bool = True) -> LocalCluster:
    """A cluster that listens on an address; raises CannotStart for one that others reach without certificates. Made under ``CONFIG``."""
    protocol = "tcp://" if files == NO_TLS else "tls://"
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=processes,
        host=host,
        scheduler_port=port,
        protocol=protocol,
        security=security_of(f"{protocol}{host}:{port}", files),
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        memory_limit=0,
    )


def run_cluster(host: str, port: int, workers: int, files: TlsFiles) -> int:
    """Run a cluster until a signal ends it; returns the exit code."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with dask.config.set(CONFIG), local_cluster(host, port, workers, files) as cluster:
        print(f"{workers} workers; set HALFMOON_CLUSTER={cluster.scheduler_address}", flush=True)
        ended.wait()
    return 0
