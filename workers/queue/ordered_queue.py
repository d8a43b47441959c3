"""Queue of RQ whose messages wait in the order of ``workers.queue.order`` in place of a list."""

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

import rq
from redis import Redis
from rq.exceptions import DequeueTimeout, NoSuchJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from workers.contract import SIZES, JobSize
from workers.queue.order import COSTS, POP, PUSH, Place

_LONGEST_BLOCK_SECONDS = 2.0
"""seconds after which a worker looks for itself, in case that Redis has lost its bell"""


class OrderedQueue(rq.Queue):
    """A queue, of which a worker takes the jobs of some ``sizes``. ``place`` is that of the message that is enqueued next."""

    def __init__(self, name: str, redis: Redis, sizes: Collection[JobSize] = SIZES) -> None:
        super().__init__(name, connection=redis, serializer=JSONSerializer)
        self.sizes = [size for size in SIZES if size in sizes]
        self.place = Place()

    def waiting_key(self, size: JobSize) -> str:
        """Key of the sorted set of the messages of a size."""
        return f"{self.name}:waiting:{size}"

    @property
    def tags_key(self) -> str:
        """Key of the hash of the clock and of the last tag of each flow."""
        return f"{self.name}:tags"

    def bell_key(self, size: JobSize) -> str:
        """Key of the list on which idle workers wait for messages of a size."""
        return f"{self.name}:bell:{size}"

    def push_job_id(self, job_id: str, pipeline: Any = None, at_front: bool = False) -> None:
        """Add a message; see rq.Queue."""
        keys = [self.waiting_key(self.place.size), self.tags_key, self.bell_key(self.place.size)]
        to = pipeline if pipeline is not None else self.connection
        to.eval(PUSH, len(keys), *keys, job_id, self.place.flow, COSTS[self.place.size], int(at_front))

    @classmethod
    def dequeue_any(
        cls, queues: Iterable[rq.Queue], timeout: int | None, connection: Redis, job_class: type[Job] | None = None, *_: Any, **__: Any
    ) -> tuple[Job, rq.Queue] | None:
        """The next message of a queue, waiting up to ``timeout`` seconds for it; see rq.Queue. Raises DequeueTimeout."""
        (queue,) = cast("Sequence[OrderedQueue]", list(queues))
        deadline = time.monotonic() + (timeout or 0)
        while True:
            message = queue._pop()
            if message is not None:
                try:
                    return (job_class or Job).fetch(message, connection=connection, serializer=JSONSerializer), queue
                except NoSuchJobError:  # it has been forgotten
                    continue
            left = deadline - time.monotonic()
            if timeout is None:
                return None
            if left <= 0:
                raise DequeueTimeout(timeout, [queue.name])
            connection.blpop([queue.bell_key(size) for size in queue.sizes], min(left, _LONGEST_BLOCK_SECONDS))

    def _pop(self) -> str | None:
        keys = [self.waiting_key(size) for size in (*self.sizes, *(size for size in SIZES if size not in self.sizes))]
        found = cast("bytes | None", self.connection.eval(POP, len(keys) + 1, *keys, self.tags_key, len(self.sizes)))
        return None if found is None else found.decode()
