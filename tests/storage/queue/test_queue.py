"""The queue: ids alone travel, small jobs first, fair among callers; a Redis that does not answer is known."""

import heapq
import json
import math
import random
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

import pytest
from redis import Redis
from rq.exceptions import DequeueTimeout

from storage.errors import RedisUnavailable
from storage.names import new_id
from storage.queue.ordered_queue import COSTS, OrderedQueue
from storage.queue.queue import Queue
from storage.records import SIZES, JobSize, QueuePlace


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


SECONDS: Mapping[JobSize, float] = {"small": 1.0, "medium": 4.0, "large": 16.0}


class Arrival(NamedTuple):
    at: float
    size: JobSize
    caller: str


class Run(NamedTuple):
    id: str
    size: JobSize
    caller: str
    came: float
    began: float


class Simulation:
    """Workers that take jobs from a queue. ``takes`` has the sizes that each takes."""

    def __init__(self, redis: Redis, takes: Sequence[Sequence[JobSize]]) -> None:
        self.queue = Queue(redis, "q")
        self.workers = [OrderedQueue("q", redis, sizes) for sizes in takes]
        self.redis = redis

    def take(self, worker: int) -> str | None:
        found = OrderedQueue.dequeue_any([self.workers[worker]], None, self.redis)
        return None if found is None else str(found[0].args[0])

    def run(self, arrivals: Iterable[Arrival]) -> list[Run]:
        """All jobs in the order in which they began."""
        coming = sorted(enumerate(arrivals), key=lambda each: each[1].at)
        known = {f"job-{number:024}": arrival for number, arrival in coming}
        pending, runs = [(arrival.at, f"job-{number:024}") for number, arrival in coming], list[Run]()
        free_at = [(0.0, worker) for worker in range(len(self.workers))]
        idle: list[int] = []
        while pending or free_at:
            now = min(pending[0][0] if pending else math.inf, free_at[0][0] if free_at else math.inf)
            while pending and pending[0][0] <= now:
                id = pending.pop(0)[1]
                self.queue.enqueue(id, QueuePlace(known[id].size, known[id].caller))
            while free_at and free_at[0][0] <= now:
                idle.append(heapq.heappop(free_at)[1])
            for worker in sorted(idle):
                if (taken := self.take(worker)) is not None:
                    idle.remove(worker)
                    arrival = known[taken]
                    runs.append(Run(taken, arrival.size, arrival.caller, arrival.at, now))
                    heapq.heappush(free_at, (now + SECONDS[arrival.size], worker))
        return runs


def test_a_thousand_jobs_of_one_caller_do_not_keep_another_waiting(redis: Redis) -> None:
    flood = [Arrival(0.0, "small", "many") for _ in range(200)]
    runs = Simulation(redis, [SIZES]).run([*flood, *(Arrival(20.5 + 30 * turn, "small", "few") for turn in range(5))])
    assert max(run.began - run.came for run in runs if run.caller == "few") <= 2 * SECONDS["small"]
    assert len(runs) == 205


def test_callers_who_wait_get_the_same_work_done(redis: Redis) -> None:
    """However many jobs each has waiting, and whatever their sizes: by the cost of the jobs, up to one job each."""
    arrivals = [Arrival(0.0, "small", "a") for _ in range(96)] + [Arrival(0.0, "medium", "b") for _ in range(24)]
    arrivals += [Arrival(0.0, "large", "c") for _ in range(6)]
    runs = Simulation(redis, [SIZES]).run(arrivals)
    done: Counter[str] = Counter()
    for run in runs[:60]:
        done[run.caller] += COSTS[run.size]
        assert max(done.values()) - min(done[caller] for caller in "abc") <= max(COSTS.values()) + COSTS["medium"]


def test_a_small_job_that_comes_goes_before_large_ones_that_wait(redis: Redis) -> None:
    large = [Arrival(0.0, "large", "a") for _ in range(20)]
    runs = Simulation(redis, [SIZES, SIZES]).run([*large, Arrival(3.0, "small", "a"), Arrival(40.0, "small", "a")])
    waits = [run.began - run.came for run in runs if run.size == "small"]
    assert max(waits) <= SECONDS["large"]  # until a worker is free


def test_a_large_job_has_its_turn_however_many_small_ones_come(redis: Redis) -> None:
    small = [Arrival(0.9 * turn, "small", f"k{turn % 3}") for turn in range(150)]
    runs = Simulation(redis, [SIZES]).run([*small, Arrival(10.0, "large", "other")])
    (place,) = [place for place, run in enumerate(runs) if run.size == "large"]
    before = sum(run.came >= 10.0 for run in runs[:place])
    assert before <= 3 * COSTS["large"] // COSTS["small"]
    assert place < 150


@pytest.mark.parametrize("seed", range(5))
def test_every_job_runs_once_and_no_wait_exceeds_its_bound(redis: Redis, seed: int) -> None:
    """The bound of the page: the jobs that wait already, and ``cost / cost'`` later jobs of each flow."""
    chance = random.Random(seed)
    sizes = chance.choices(SIZES, (8, 3, 1), k=120)
    arrivals = [Arrival(chance.uniform(0, 150), size, chance.choice(["a", "a", "a", "b", "c"])) for size in sizes]
    runs = Simulation(redis, [SIZES] * chance.randint(1, 3)).run(arrivals)
    assert Counter((run.size, run.caller) for run in runs) == Counter((each.size, each.caller) for each in arrivals)
    assert len({run.id for run in runs}) == len(runs)
    for place, run in enumerate(runs):
        flow, before = (run.size, run.caller), runs[:place]
        waited = sum((other.size, other.caller) == flow and other.came <= run.came <= other.began for other in before)
        later = Counter((other.size, other.caller) for other in before if other.came > run.came)
        for (size, _), count in later.items():
            assert count <= (1 + waited) * COSTS[run.size] / COSTS[size] + 1


def test_a_flow_is_taken_in_the_order_in_which_it_came(redis: Redis) -> None:
    runs = Simulation(redis, [SIZES]).run(Arrival(0.1 * turn, "medium", "a") for turn in range(20))
    assert [run.came for run in runs] == sorted(run.came for run in runs)


def test_a_worker_takes_only_its_sizes(redis: Redis) -> None:
    world = Simulation(redis, [("small",), ("medium", "large")])
    for number, size in enumerate(("large", "small", "medium")):
        world.queue.enqueue(f"job-{number:024}", QueuePlace(size))  # type: ignore[arg-type]
    assert [world.take(0), world.take(0)] == ["job-" + "1".zfill(24), None]
    assert [world.take(1), world.take(1), world.take(1)] == ["job-" + "2".zfill(24), "job-" + "0".zfill(24), None]


def test_what_had_its_turn_goes_to_the_front_the_oldest_first(redis: Redis) -> None:
    world = Simulation(redis, [SIZES])
    ids = [f"job-{number:024}" for number in range(4)]
    world.queue.enqueue(ids[0], QueuePlace("small", "a"))
    world.queue.enqueue(ids[3], QueuePlace("large", "b"), at_front=True)
    world.queue.enqueue(ids[1], QueuePlace("small", "b"), at_front=True)
    assert [id for id, _ in sorted(world.queue.turns(ids[0]).order.items(), key=lambda each: each[1])] == [
        ids[1],
        ids[3],
        ids[0],
    ]
    assert [world.take(0) for _ in range(4)] == [ids[1], ids[3], ids[0], None]
    assert redis.exists("q:tags") == 0


def test_an_idle_worker_hears_of_a_job_and_gives_up_in_time(redis: Redis) -> None:
    world = Simulation(redis, [SIZES])
    with pytest.raises(DequeueTimeout):
        OrderedQueue.dequeue_any([world.workers[0]], 1, redis)
    world.queue.enqueue("job-" + "0" * 24)
    assert OrderedQueue.dequeue_any([world.workers[0]], 1, redis) is not None


def test_a_job_says_that_no_worker_takes_its_size(redis: Redis) -> None:
    queue = Queue(redis, "q")
    queue.enqueue("job-" + "0" * 24, QueuePlace("large"))
    state = queue._redis_state
    state.record_heartbeat("w", 60.0, sizes=("small", "medium"))
    assert (
        queue.turns("job-" + "0" * 24).waiting_for("job-" + "0" * 24)
        == "waiting for a worker that takes large jobs: none is running"
    )
    state.remove_worker("w")
    queue._turns_until = 0.0
    assert queue.turns("job-" + "0" * 24).waiting_for("job-" + "0" * 24) == "waiting for a worker: none is running"
    assert queue.depths() == {"small": 0, "medium": 0, "large": 1}
