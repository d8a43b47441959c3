"""Claims of documents: who is about to label what, so that several people do not label the same. They end by themselves, and may be lost."""

from collections.abc import Collection
from typing import cast

from redis import Redis

from workers.queue.connect import redis_errors


class Claims:
    """Claims in Redis: of each dataset a sorted set of ``position:person``, by the time at which the claim ends."""

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    def of_others(self, dataset: str, person: str) -> set[int]:
        """Positions of the documents of a dataset that others have claimed; raises RedisStateUnavailable."""
        with redis_errors():
            now, _ = self._redis.time()
            members = cast("list[bytes]", self._redis.zrangebyscore(self._key(dataset), f"({now}", "+inf"))
        claimed = (member.decode().partition(":") for member in members)
        return {int(position) for position, _, other in claimed if other != person}

    def claim(self, dataset: str, positions: Collection[int], person: str, seconds: int) -> None:
        """Claim documents for so many seconds, by the clock of Redis; raises RedisStateUnavailable."""
        if not positions:
            return
        key = self._key(dataset)
        with redis_errors():
            now, _ = self._redis.time()
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.zadd(key, {f"{position}:{person}": now + seconds for position in positions})
                pipe.zremrangebyscore(key, "-inf", now)
                pipe.expire(key, 2 * seconds, gt=True)
                pipe.expire(key, 2 * seconds, nx=True)
                pipe.execute()

    def _key(self, dataset: str) -> str:
        return f"{self._namespace}:claims:{dataset}"
