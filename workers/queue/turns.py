"""What a queued job waits for, in words."""

from collections.abc import Mapping
from typing import NamedTuple


class Turns(NamedTuple):
    """The queue at one moment."""

    order: Mapping[str, int]
    """number of jobs before each job that waits, by its id"""
    workers: int
    """number of workers that take jobs"""
    starting: int
    """number of workers that do not take jobs yet"""

    def waiting_for(self, job_id: str) -> str:
        """What the job waits for: the phase of its progress until a worker takes it."""
        ahead = self.order.get(job_id, 0)
        jobs = "1 job before it" if ahead == 1 else f"{ahead} jobs before it"
        if self.workers:
            return f"waiting for {jobs}" if ahead else "waiting for a free worker"
        worker = "waiting for a worker that is starting" if self.starting else "waiting for a worker: none is running"
        return f"{worker}, and for {jobs}" if ahead else worker
