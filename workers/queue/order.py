"""Order of the jobs that wait: small before large, fair among callers, and no job waits for ever. Self-clocked fair queueing (Golestani, 1994).

A job has a tag, and of the waiting jobs that a worker takes the one with the lowest tag is next.

    flow    the jobs of one caller (API key) of one size
    cost    of a job by its size: 1, 4 or 16
    clock   the tag of the job that was taken last
    tag     max(clock, tag of the flow's last job) + cost

- Among flows that always have a job waiting, the cost of the jobs taken is the same, up to the largest cost of one job: a caller with a thousand jobs
  delays another's by no more than one of its own of each size.
- A small job that comes goes before a large one that waits, unless the clock has come close to the tag of that.
- A tag never changes, and the clock only rises: of the jobs that come after a job, at most ``(1 + n) cost / cost'`` of each flow of cost ``cost'`` go
  before it, if ``n`` jobs of its own flow were waiting. So no job starves.

What goes to the front, since it had its turn and lost it, has the tag -1. Equal tags are ordered by the ids of the jobs, which begin with their time.
When no job waits, clock and tags begin anew. Redis holds all of it, and may lose it: the reconciler enqueues the jobs again, the oldest first.
"""

from collections.abc import Mapping
from typing import NamedTuple

from workers.contract import JobSize

COSTS: Mapping[JobSize, int] = {"small": 1, "medium": 4, "large": 16}
"""cost of a job by its size"""


class Place(NamedTuple):
    """What decides when a job has its turn."""

    size: JobSize = "medium"
    caller: str | None = None
    """id of the API key; None where no keys are required"""

    @property
    def flow(self) -> str:
        """Name of the flow of the job."""
        return f"{self.size} {self.caller or ''}"


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
"""Script that adds a message. Keys: the waiting ones of its size, the tags, the bell of its size. Arguments: message, flow, cost, whether it goes to
the front. The bell is a list on which idle workers wait; it may ring in vain."""

POP = """
local from, message, lowest
for place = 1, tonumber(ARGV[1]) do
  local first = redis.call('zrange', KEYS[place], 0, 0, 'withscores')
  if first[1] and (not lowest or tonumber(first[2]) < lowest or (tonumber(first[2]) == lowest and first[1] < message)) then
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
"""Script that takes the message with the lowest tag. Keys: the waiting ones of all sizes, those that the worker takes first; the tags. Argument: how
many of them the worker takes."""
