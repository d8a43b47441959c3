"""Claims of documents in Redis by people who are about to label them, so that two do not label the same."""

from collections.abc import Collection
from typing import cast

from redis import Redis

from storage.queue.connection import redis_errors

_CLAIM = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now + ARGV[2], '+inf')
local taken = {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    local position, person = string.match(member, '^(%d+):(.*)$')
    if person ~= ARGV[1] then taken[position] = true end
end
local lost = {}
for k = 3, #ARGV do
    if taken[ARGV[k]] then
        lost[#lost + 1] = ARGV[k]
    else
        redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[k] .. ':' .. ARGV[1])
    end
end
if redis.call('TTL', KEYS[1]) < 2 * ARGV[2] then redis.call('EXPIRE', KEYS[1], 2 * ARGV[2]) end
return lost
"""
"""A script of Redis, so that of several people who claim a document at the same time one gets it."""


class DocumentClaims:
    """Claims of documents in Redis: of each dataset a sorted set of ``position:person``, by the time at which the claim
    ends.
    """

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    @redis_errors()
    def of_others(self, dataset: str, person: str) -> set[int]:
        """Positions of the documents of a dataset that others have claimed; raises RedisUnavailable."""
        now, _ = self._redis.time()
        members = cast("list[bytes]", self._redis.zrangebyscore(self._key(dataset), f"({now}", "+inf"))
        claimed = (member.decode().partition(":") for member in members)
        return {int(position) for position, _, other in claimed if other != person}

    @redis_errors()
    def claim(self, dataset: str, positions: Collection[int], person: str, seconds: int) -> set[int]:
        """Claim documents for so many seconds, by the clock of Redis; positions of those that others have.

        Raises RedisUnavailable.
        """
        if not positions:
            return set()
        lost = cast("list[bytes]", self._redis.eval(_CLAIM, 1, self._key(dataset), person, seconds, *positions))
        return set(map(int, lost))

    def _key(self, dataset: str) -> str:
        return f"{self._namespace}:claims:{dataset}"
