"""The store and the connections to Redis of the tests of workers."""

from tests.workers.conftest import no_redis, redis, store

__all__ = ["no_redis", "redis", "store"]
