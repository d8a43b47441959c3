"""Queue of RQ with an order of the waiting messages in place of a list.

Small jobs come before large ones, callers in turn, and no job waits for ever. It is self-clocked fair queueing
(Golestani, 1994).

A job has a tag, and of the waiting jobs that a worker takes the one with the lowest tag is next.

    flow    the jobs of one caller (API key) of one size
    cost    of a job by its size: 1, 4 or 16
    clock   the tag of the job that was taken last
    tag     max(clock, tag of the flow's last job) + cost

- Among flows that always have a job waiting, the cost of the jobs taken is the same, up to the largest cost of one
  job: a caller with a thousand jobs delays another's by no more than one of its own of each size.
- A small job that comes goes before a large one that waits, unless the clock has come close to the tag of that.
- A tag never changes, and the clock only rises: of the jobs that come after a job, at most ``(1 + n) cost / cost'``
  of each flow of cost ``cost'`` go before it, if ``n`` jobs of its own flow were waiting. So no job starves.

What goes to the front, since it had its turn and lost it, has the tag -1. Equal tags are ordered by the ids of the
jobs, which begin with their time. When no job waits, clock and tags begin anew. Redis holds all of it, and may lose it:
the reconciler enqueues the jobs again, the oldest first.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import rq
from redis import Redis
from rq.exceptions import DequeueTimeout, NoSuchJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from storage.records import SIZES, JobSize, QueuePlace

_LONGEST_BLOCK_SECONDS = 2.0
"""seconds after which a worker looks for itself, in case that Redis has lost its bell"""
COSTS: Mapping[JobSize, int] = {"small": 1, "medium": 4, "large": 16}
"""cost of a job by its size"""

PUSH = """
local tag = -1
if ARGV[4] == '0' then
  local last = tonumber(redis.call('hget', KEYS[2], ARGV[2]) or '0')
  local clock = tonumber(redis.call('hget', KEYS[2], 'clock') or '0')
  tag = math.max(clock, last) + tonumber(ARGV[3])
  redis.call('hset', KEYS[2], ARGV[2], tag)
end
redis.call('zadd', KEYS[1], tag, ARGV[1])
redis.call('rpush', KEYS[3], '')
redis.call('ltrim', KEYS[3], 0, 99)
"""
"""Script that adds a message. Keys: the waiting ones of its size, the tags, the bell of its size. Arguments: message,
flow, cost, whether it goes to the front. The bell is a list on which idle workers wait; it may ring in vain."""

POP = """
local from, message, lowest
for place = 1, tonumber(ARGV[1]) do
  local first = redis.call('zrange', KEYS[place], 0, 0, 'withscores')
  local tag = tonumber(first[2])
  if first[1] and (not lowest or tag < lowest or (tag == lowest and first[1] < message)) then
    from, message, lowest = KEYS[place], first[1], tonumber(first[2])
  end
end
if not message then return false end
redis.call('zrem', from, message)
local tags = KEYS[#KEYS]
if lowest > tonumber(redis.call('hget', tags, 'clock') or '0') then redis.call('hset', tags, 'clock', lowest) end
for place = 1, #KEYS - 1 do
  if redis.call('exists', KEYS[place]) == 1 then return message end
end
redis.call('del', tags)
return message
"""
"""Script that takes the message with the lowest tag. Keys: the waiting ones of all sizes, those that the worker takes
first; the tags. Argument: how many of them the worker takes."""


class OrderedQueue(rq.Queue):
    """A queue for a worker that takes the jobs of some ``sizes``.

    ``place`` is that of the message that is enqueued next.
    """

    def __init__(self, name: str, redis: Redis, sizes: Collection[JobSize] = SIZES) -> None:
        super().__init__(name, connection=redis, serializer=JSONSerializer)
        self.sizes = [size for size in SIZES if size in sizes]
        self.place = QueuePlace()

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
        cls,
        queues: Iterable[rq.Queue],
        timeout: int | None,
        connection: Redis,
        job_class: type[Job] | None = None,
        *_: Any,
        **__: Any,
    ) -> tuple[Job, rq.Queue] | None:
        """The next message of a queue, waiting up to ``timeout`` seconds for it; see rq.Queue.

        Raises DequeueTimeout.
        """
        (queue,) = cast("Sequence[OrderedQueue]", list(queues))
        sizes = (*queue.sizes, *(size for size in SIZES if size not in queue.sizes))
        keys = [*map(queue.waiting_key, sizes), queue.tags_key]
        deadline = time.monotonic() + (timeout or 0)
        while True:
            message = cast("bytes | None", connection.eval(POP, len(keys), *keys, len(queue.sizes)))
            if message is not None:
                id = message.decode()
                try:
                    return (job_class or Job).fetch(id, connection=connection, serializer=JSONSerializer), queue
                except NoSuchJobError:  # it has been forgotten
                    continue
            left = deadline - time.monotonic()
            if timeout is None:
                return None
            if left <= 0:
                raise DequeueTimeout(timeout, [queue.name])
            connection.blpop([queue.bell_key(size) for size in queue.sizes], min(left, _LONGEST_BLOCK_SECONDS))
