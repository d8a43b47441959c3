"""Reconciliation repairs the damage of a lost Redis or a dead worker, and disturbs no running attempt."""

import json
from datetime import UTC, datetime

import pytest
from redis import Redis

from storage.errors import Unavailable
from storage.names import new_id
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import JobState, Outcome, Progress
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from storage.upkeep.reconcile import Reconciler, Repairs
from tests.calls import meanwhile, noted
from tests.stores import failure_of, later, submit, success
from tests.there import there
from tests.waiting import Clock

NOTHING = Repairs([], [], [])
LEASE = 3.0


class World:
    """A store, a queue and a reconciler with a clock that the test sets."""

    def __init__(self, store: Store, redis: Redis) -> None:
        self.jobs, self.redis_state, self.queue, self.clock = (
            Jobs(store),
            RedisState(redis, "q"),
            Queue(redis, "q"),
            Clock(),
        )
        self.reconciler = Reconciler(self.jobs, self.redis_state, self.queue, lease_seconds=LEASE, clock=self.clock)

    def later(self, seconds: float = LEASE + 0.1) -> Repairs:
        self.clock.now += seconds
        return self.reconciler.reconcile()


@pytest.fixture
def world(store: Store, redis: Redis) -> World:
    return World(store, redis)


def test_a_lost_message_is_sent_again_but_not_at_once(world: World, id: str) -> None:
    assert world.later() == NOTHING
    assert world.later(LEASE - 0.1) == NOTHING
    assert world.later(0.2) == Repairs([id], [], [])
    assert world.queue.waiting() == {id}
    assert world.later() == NOTHING
    assert world.queue.depth() == 1


@pytest.mark.parametrize("record", ["request.json", "outcome.json", "attempts/1.json", "cancel.json"])
def test_a_damaged_job_keeps_no_other_from_being_enqueued(store: Store, world: World, record: str) -> None:
    broken, other = submit(store), submit(store)
    world.jobs.claim_attempt(broken, "w")
    store.replace(f"jobs/{broken}/{record}", b"{")
    store.create("open/lost-and-found", b"")
    repairs = [world.later(), world.later()]
    assert [repair.enqueued for repair in repairs][-1][-1] == other
    assert other in world.queue.waiting()
    assert (broken in world.queue.waiting()) == (record == "attempts/1.json")


def test_a_job_that_cannot_be_repaired_keeps_no_other_from_being_so(store: Store, world: World) -> None:
    broken, other = submit(store), submit(store)
    world.jobs.record_outcome(broken, success(store).model_copy(update={"files": {}}))
    world.later()
    assert world.later().enqueued == [other]


def test_after_a_flush_everything_queued_is_enqueued_again(store: Store, world: World, redis: Redis) -> None:
    ids = [submit(store) for _ in range(5)]
    for id in ids:
        world.queue.enqueue(id)
    assert world.later() == NOTHING
    redis.flushall()
    assert world.later() == NOTHING
    assert world.later().enqueued == ids
    assert world.queue.waiting() == set(ids)


def test_what_died_goes_before_what_waits_and_what_was_lost_behind_it_the_oldest_first(
    store: Store, world: World
) -> None:
    died, lost, lost_too, waits, died_too = (submit(store) for _ in range(5))
    for id in (died, died_too):
        world.jobs.claim_attempt(id, "w")
    world.queue.enqueue(waits)
    world.later()
    assert world.later().enqueued == [died, lost, lost_too, died_too]
    order = world.queue.turns(died).order
    assert sorted(order, key=order.__getitem__) == [died, died_too, waits, lost, lost_too]


def test_what_runs_is_left_alone(world: World, id: str) -> None:
    world.jobs.claim_attempt(id, "w")
    for _ in range(3):
        world.redis_state.leases.renew(id, 1, "w", 60)
        assert world.later() == NOTHING


def test_a_lease_that_comes_back_after_a_flush_counts(world: World, redis: Redis, id: str) -> None:
    world.jobs.claim_attempt(id, "w")
    world.redis_state.leases.renew(id, 1, "w", 60)
    redis.flushall()
    assert world.later() == NOTHING
    world.redis_state.leases.renew(id, 1, "w", 60)
    assert world.later() == NOTHING
    redis.flushall()
    assert world.later() == NOTHING, "the time without a lease begins anew"


def test_a_dead_attempt_is_tried_again_and_its_lease_of_old_does_not_count(world: World, id: str) -> None:
    world.jobs.claim_attempt(id, "w1")
    world.jobs.claim_attempt(id, "w2")
    world.redis_state.leases.renew(id, 1, "w", 60)
    world.later()
    assert world.later().enqueued == [id]


def test_the_third_death_fails_the_job(store: Store, world: World, id: str) -> None:
    for _ in range(3):
        world.jobs.claim_attempt(id, "w")
    world.later()
    assert world.later() == NOTHING, "the last attempt may only be cut off: failing cannot be taken back"
    assert world.later(4 * LEASE) == Repairs([], [], [id])
    error = failure_of(store, id)
    assert error.type == "/problems/worker-died"
    assert "3 attempts" in error.detail
    assert world.later() == NOTHING


def test_attempts_that_were_handed_back_are_no_deaths(world: World, id: str) -> None:
    for number in (1, 2, 3):
        world.jobs.claim_attempt(id, "w")
        world.jobs.record_hand_back(id, number)
    world.later()
    assert world.later().enqueued == [id]


def test_an_attempt_that_begins_meanwhile_is_no_death(world: World, monkeypatch: pytest.MonkeyPatch, id: str) -> None:
    for _ in range(2):
        world.jobs.claim_attempt(id, "w")
    world.later()
    meanwhile(
        monkeypatch, world.redis_state.leases, "held", lambda: world.jobs.claim_attempt(id, "another"), after=True
    )
    assert world.later(LEASE * 6) == Repairs([id], [], []), "to enqueue a job that runs is harmless, to fail it is not"


def test_a_cancel_that_nobody_can_hear_any_more_is_carried_out(world: World, id: str) -> None:
    world.jobs.claim_attempt(id, "w")
    world.jobs.cancel(id)
    world.later()
    assert world.later() == Repairs([], [], [id])
    assert world.jobs.get(id).state is JobState.CANCELLED


def test_a_success_that_was_not_published_is_published(store: Store, world: World, id: str) -> None:
    world.jobs.claim_attempt(id, "w")
    world.jobs.record_outcome(id, success(store))
    world.redis_state.leases.renew(id, 1, "w", 60)
    assert world.later() == NOTHING, "who has trained it lives and publishes it"
    world.redis_state.leases.revoke(id, 1)
    assert world.later() == Repairs([], [id], [])
    assert world.jobs.get(id).state is JobState.SUCCEEDED
    assert world.later() == NOTHING
    assert len(Models(store).versions("news")) == 1


def test_two_reconcilers_send_one_message(store: Store, redis: Redis, id: str) -> None:
    worlds = [World(store, redis) for _ in range(2)]
    for world in worlds:
        world.later()
    assert [world.later().enqueued for world in worlds] == [[id], []]


def test_without_redis_nothing_is_concluded(store: Store, no_redis: Redis, redis: Redis, id: str) -> None:
    world, away = World(store, redis), World(store, no_redis)
    world.later()
    world.reconciler._queue, world.queue = away.queue, world.queue
    for _ in range(3):
        with pytest.raises(Unavailable):
            world.later()
    world.reconciler._queue = world.queue
    assert world.later() == NOTHING, "the time during which Redis was away does not count"
    assert world.later().enqueued == [id]


def test_a_round_asks_for_the_queue_once(store: Store, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [submit(store) for _ in range(4)]
    world.later()
    asked = noted(monkeypatch, Queue, "waiting", lambda queue: queue)
    assert world.later().enqueued == ids
    assert len(asked) == 1


def test_the_marks_of_jobs_that_are_over_or_were_never_stored_go(
    store: Store, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, fresh = submit(store), new_id("job")
    world.jobs.record_outcome(over, Outcome(state=JobState.FAILED, attempt=0, finished_at=datetime.now(UTC)))
    with monkeypatch.context() as patch:
        patch.setattr("storage.names.time.time_ns", lambda: 1_700_000_000 * 10**9)
        old = new_id("job")
    for id in (fresh, old):
        store.create(f"open/{id}", b"")
    assert list(world.jobs.unfinished()) == []
    assert set(store.children("open")) == {over, fresh, old}, "looking changes nothing"
    world.later()
    assert store.children("open") == sorted([fresh, old]), "a clock may be wrong"
    with later(monkeypatch, 3_700):
        world.later()
    assert store.children("open") == [fresh]


@pytest.mark.parametrize("cancelled", [False, True])
def test_what_was_told_of_a_job_that_is_given_up_is_kept(
    store: Store, world: World, redis: Redis, cancelled: bool, id: str
) -> None:
    for _ in range(3):
        world.jobs.claim_attempt(id, "w")
    if cancelled:
        world.jobs.cancel(id)
    row = {"phase": "mfn", "iteration": 1, "stage_objective": 0.5, "objective": None, "fraction": 0.4, "seconds": 0.1}
    world.redis_state.publish_progress(id, Progress(fraction=0.4, phase="mfn", iteration=1), [row])
    world.later()
    assert world.later(5 * LEASE + 0.1).ended == [id]
    redis.flushall()
    job = world.jobs.get(id)
    assert (job.state, job.progress.fraction, job.progress.phase) == (
        JobState.CANCELLED if cancelled else JobState.FAILED,
        0.4,
        "mfn",
    )
    assert json.loads(store.local(there(job.outcome).files["trace"]).read_bytes()) == [row]
