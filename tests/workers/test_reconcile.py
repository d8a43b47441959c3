"""Repairs: what a lost Redis or a dead worker has left is put right, and nothing that lives is disturbed."""

import pytest
from redis import Redis

from tests.workers.conftest import submit, success
from workers.contract import JobState
from workers.errors import Unavailable
from workers.jobs import Jobs
from workers.live import Live
from workers.models import Models
from workers.queue import Queue
from workers.reconcile import Reconciler, Repairs
from workers.storage import Store

NOTHING = Repairs([], [], [])
LEASE = 3.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    """A store, a queue and a reconciler whose clock stands still until told."""

    def __init__(self, store: Store, redis: Redis) -> None:
        self.jobs, self.live, self.queue, self.clock = Jobs(store), Live(redis, "q"), Queue(redis, "q"), Clock()
        self.reconciler = Reconciler(self.jobs, self.live, self.queue, lease_seconds=LEASE, clock=self.clock)

    def later(self, seconds: float = LEASE + 0.1) -> Repairs:
        self.clock.now += seconds
        return self.reconciler.round()


@pytest.fixture
def world(store: Store, redis: Redis) -> World:
    return World(store, redis)


def test_a_lost_message_is_sent_again_but_not_at_once(store: Store, world: World) -> None:
    id = submit(store)
    assert world.later() == NOTHING
    assert world.later(LEASE - 0.1) == NOTHING
    assert world.later(0.2) == Repairs([id], [], [])
    assert world.queue.waiting() == {id}
    assert world.later() == NOTHING
    assert world.queue.depth() == 1


def test_after_a_flush_everything_queued_is_enqueued_again(store: Store, world: World, redis: Redis) -> None:
    ids = [submit(store) for _ in range(5)]
    for id in ids:
        world.queue.enqueue(id)
    assert world.later() == NOTHING
    redis.flushall()
    assert world.later() == NOTHING
    assert world.later().enqueued == ids
    assert world.queue.waiting() == set(ids)


def test_what_runs_is_left_alone(store: Store, world: World) -> None:
    id = submit(store)
    world.jobs.begin(id, "w")
    for _ in range(3):
        world.live.lease(id, 1, 60)
        assert world.later() == NOTHING


def test_a_lease_that_comes_back_after_a_flush_counts(store: Store, world: World, redis: Redis) -> None:
    id = submit(store)
    world.jobs.begin(id, "w")
    world.live.lease(id, 1, 60)
    redis.flushall()
    assert world.later() == NOTHING
    world.live.lease(id, 1, 60)
    assert world.later() == NOTHING
    redis.flushall()
    assert world.later() == NOTHING, "the time without a lease begins anew"


def test_a_dead_attempt_is_tried_again_and_its_lease_of_old_does_not_count(store: Store, world: World) -> None:
    id = submit(store)
    world.jobs.begin(id, "w1")
    world.jobs.begin(id, "w2")
    world.live.lease(id, 1, 60)
    world.later()
    assert world.later().enqueued == [id]


def test_the_third_death_fails_the_job(store: Store, world: World) -> None:
    id = submit(store)
    for _ in range(3):
        world.jobs.begin(id, "w")
    world.later()
    assert world.later() == Repairs([], [], [id])
    job = world.jobs.get(id)
    assert job.state is JobState.FAILED
    assert job.outcome is not None
    assert job.outcome.error is not None
    assert job.outcome.error.type == "/problems/worker-died"
    assert "3 attempts" in job.outcome.error.detail
    assert world.later() == NOTHING


def test_attempts_that_were_handed_back_are_no_deaths(store: Store, world: World) -> None:
    id = submit(store)
    for number in (1, 2, 3):
        world.jobs.begin(id, "w")
        world.jobs.hand_back(id, number)
    world.later()
    assert world.later().enqueued == [id]


def test_a_cancel_that_nobody_can_hear_any_more_is_carried_out(store: Store, world: World) -> None:
    id = submit(store)
    world.jobs.begin(id, "w")
    world.jobs.cancel(id)
    world.later()
    assert world.later() == Repairs([], [], [id])
    assert world.jobs.get(id).state is JobState.CANCELLED


def test_a_success_that_was_not_published_is_published(store: Store, world: World) -> None:
    id = submit(store)
    world.jobs.begin(id, "w")
    world.jobs.finish(id, success(store))
    world.live.lease(id, 1, 60)
    assert world.later() == NOTHING, "who has trained it lives and publishes it"
    world.live.release(id, 1)
    assert world.later() == Repairs([], [id], [])
    assert world.jobs.get(id).state is JobState.SUCCEEDED
    assert world.later() == NOTHING
    assert len(Models(store).versions("news")) == 1


def test_two_reconcilers_send_one_message(store: Store, redis: Redis) -> None:
    id = submit(store)
    worlds = [World(store, redis) for _ in range(2)]
    for world in worlds:
        world.later()
    assert [world.later().enqueued for world in worlds] == [[id], []]


def test_tidying_comes_first_and_then_now_and_then(store: Store, redis: Redis) -> None:
    tidied: list[float] = []
    clock = Clock()
    reconciler = Reconciler(Jobs(store), Live(redis, "q"), Queue(redis, "q"), lease_seconds=LEASE, tidy=lambda: tidied.append(clock.now), clock=clock)
    for clock.now in (0.0, 1.0, 599.0, 601.0, 1200.0, 1202.0):
        reconciler.round()
    assert tidied == [0.0, 601.0, 1202.0]


def test_without_redis_nothing_is_concluded(store: Store, no_redis: Redis, redis: Redis) -> None:
    id = submit(store)
    world, away = World(store, redis), World(store, no_redis)
    world.later()
    world.reconciler._queue, world.queue = away.queue, world.queue
    for _ in range(3):
        with pytest.raises(Unavailable):
            world.later()
    world.reconciler._queue = world.queue
    assert world.later() == NOTHING, "the time during which Redis was away does not count"
    assert world.later().enqueued == [id]
