"""What a queued job waits for, in words."""

from collections.abc import Mapping
from typing import NamedTuple

from workers.contract import JobSize


class Turns(NamedTuple):
    """The queue at one moment."""

    order: Mapping[str, int]
    """number of jobs before each job that waits, by its id"""
    sizes: Mapping[str, JobSize]
    """size of each job that waits"""
    workers: int
    """number of workers that take jobs"""
    takers: Mapping[JobSize, int]
    """number of workers that take jobs of a size"""
    starting: int
    """number of workers that do not take jobs yet"""

    def waiting_for(self, job_id: str) -> str:
        """What the job waits for: the phase of its progress until a worker takes it."""
        ahead = self.order.get(job_id, 0)
        jobs = "1 job before it" if ahead == 1 else f"{ahead} jobs before it"
        size = self.sizes.get(job_id)
        if self.workers and size is not None and not self.takers[size]:
            return f"waiting for a worker that takes {size} jobs: none is running"
        if self.workers:
            return f"waiting for {jobs}" if ahead else "waiting for a free worker"
        worker = "waiting for a worker that is starting" if self.starting else "waiting for a worker: none is running"
        return f"{worker}, and for {jobs}" if ahead else worker
