"""The queue: ids alone travel, and a Redis that does not answer is known."""

import json
import time
import zlib
from typing import cast

import pytest
from redis import Redis

from storage.errors import RedisUnavailable
from storage.names import new_id
from storage.queue.ordered_queue import OrderedQueue
from storage.queue.queue import Queue


def test_the_queue_carries_ids_as_json(redis: Redis) -> None:
    queue = Queue(redis, "q")
    queue.ping()
    assert (queue.depth(), queue.waiting()) == (0, set())
    queue.enqueue("job-1")
    queue.enqueue("job-2")
    assert (queue.depth(), queue.waiting()) == (2, {"job-1", "job-2"})
    job, _ = OrderedQueue.dequeue_any([OrderedQueue("q", redis)], None, redis) or (None, None)
    assert job is not None
    assert (job.func_name, tuple(job.args)) == ("workers.worker.tasks.train", ("job-1",))
    assert json.loads(zlib.decompress(cast("bytes", redis.hget(job.key, "data"))))[0] == "workers.worker.tasks.train"
    assert queue.waiting() == {"job-2"}


def test_how_long_the_oldest_has_waited(redis: Redis) -> None:
    queue = Queue(redis, "halfmoon")
    assert queue.age() == 0.0
    queue.enqueue("job-" + "0" * 24)
    queue.enqueue(new_id("job"))
    assert queue.age() == pytest.approx(time.time(), rel=1e-3)


def test_a_redis_that_takes_no_writes_does_not_answer(redis: Redis) -> None:
    queue = Queue(redis, "halfmoon")
    queue.ping()
    redis.config_set("min-replicas-to-write", 1)
    try:
        assert redis.ping()
        with pytest.raises(RedisUnavailable):
            queue.ping()
    finally:
        redis.config_set("min-replicas-to-write", 0)
