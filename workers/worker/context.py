"""Everything that a worker process works with, opened once and passed to each attempt."""

from typing import NamedTuple

from storage.process.settings import Settings
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.repositories.jobs import Jobs
from storage.store import Store
from storage.upkeep.reconcile import Reconciler
from workers.cluster.address import ClusterAddress
from workers.encoders.catalogue import Encoders


class WorkerContext(NamedTuple):
    """Connections and limits of one worker process."""

    settings: Settings
    store: Store
    redis_state: RedisState
    queue: Queue
    worker: str
    """name of the worker, unique among all that are alive; the holder of its leases"""
    threads: int
    """number of threads that a training computes with"""
    max_job_bytes: int
    """bytes of memory that a job may take"""
    worker_pid: int
    """process id of the worker, whose death ends its attempts: the process that runs them, or its parent"""
    encoders: Encoders = Encoders({})
    cluster: ClusterAddress | None = None
    """the cluster that large trainings are shared with"""
    traced: bool = False
    """whether spans of the jobs are sent"""

    def reconciler(self) -> Reconciler:
        """A reconciler, for jobs of attempts that this worker knows to be dead."""
        return Reconciler(
            Jobs(self.store),
            self.redis_state,
            self.queue,
            lease_seconds=self.settings.lease_seconds,
            max_attempts=self.settings.max_attempts,
        )
