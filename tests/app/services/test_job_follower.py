"""Following jobs: every listener gets every change, and a job is read once for all of them."""

import asyncio
import time
from collections.abc import Callable

import pytest
from redis import Redis

from app.services.job_follower import JobFollower, JobReader
from storage.errors import NotFound
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import Job, JobState, Progress
from storage.repositories.jobs import Jobs
from storage.store import Store
from tests.calls import noted
from tests.stores import submit, success
from tests.waiting import HANG, SOON


async def states(job_follower: JobFollower, id: str) -> list[JobState]:
    return [job.state async for job in job_follower.follow(id)]


def test_listeners_hear_every_state_and_share_the_looking(store: Store) -> None:
    id, jobs = submit(store), Jobs(store)
    looks: list[float] = []
    heard: list[list[JobState]] = [[] for _ in range(50)]

    def look(id: str) -> Job:
        looks.append(time.monotonic())
        return jobs.get(id)

    async def listen(job_follower: JobFollower, states: list[JobState]) -> None:
        async for job in job_follower.follow(id):
            states += [job.state]

    async def scene() -> None:
        job_follower = JobFollower(look, HANG)  # the first looks do not wait for so long
        listeners = [asyncio.create_task(listen(job_follower, states)) for states in heard]
        steps: tuple[Callable[[], object], ...] = (
            lambda: jobs.claim_attempt(id, "w"),
            lambda: jobs.cancel(id),
            lambda: jobs.record_outcome(id, success(store)),
            lambda: jobs.publish(id),
        )
        for number, step in enumerate(steps, 1):
            async with asyncio.timeout(SOON):
                while min(map(len, heard)) < number:
                    await asyncio.sleep(0.01)
            step()
        await asyncio.gather(*listeners)
        assert job_follower._channels == {}

    asyncio.run(scene())
    path = [JobState.QUEUED, JobState.RUNNING, JobState.CANCELLING, JobState.RUNNING, JobState.SUCCEEDED]
    assert heard == [path] * 50
    # never sooner than 10 ms after the last, however many listen
    assert len(looks) <= 1 + (looks[-1] - looks[0]) / 0.01


def test_a_listener_that_leaves_stops_the_looking(store: Store, id: str) -> None:
    looks: list[str] = []

    def look(id: str) -> Job:
        looks.append(id)
        return Jobs(store).get(id)

    async def scene() -> int:
        job_follower = JobFollower(look, 0.01)
        follower = job_follower.follow(id)
        assert (await anext(follower)).state is JobState.QUEUED
        await follower.aclose()
        before = len(looks)
        await asyncio.sleep(0.1)
        return len(looks) - before

    assert asyncio.run(scene()) <= 1


def test_every_listener_gets_the_error_of_an_unknown_job(store: Store) -> None:
    async def scene() -> None:
        job_follower = JobFollower(Jobs(store).get, 0.01)
        answers = await asyncio.gather(
            *(states(job_follower, "job-000000000000000000000000") for _ in range(3)), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [NotFound] * 3

    asyncio.run(scene())


def test_a_job_that_is_followed_costs_the_store_few_calls(
    store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, redis_state, now = submit(store), RedisState(redis, "q"), [0.0]
    reads = noted(monkeypatch, Jobs, "get", lambda _, id: id)
    reader = JobReader(Jobs(store), redis_state, Queue(redis, "q"), lambda: now[0])
    assert [reader.now(id).state for _ in range(10)] == [JobState.QUEUED] * 10
    assert len(reads) == 1
    Jobs(store).claim_attempt(id, "w")
    redis_state.note_change(id)
    redis_state.publish_progress(id, Progress(fraction=0.5))
    assert [(job.state, job.progress.fraction) for job in (reader.now(id), reader.now(id))] == [
        (JobState.RUNNING, 0.5)
    ] * 2
    assert len(reads) == 2
    Jobs(store).cancel(id)
    now[0] = 2.0
    assert reader.now(id).state is JobState.CANCELLING, "a worker may have died before it could say so"


@pytest.mark.parametrize("known", [True, False])
def test_progress_belongs_to_a_running_job(store: Store, redis: Redis, no_redis: Redis, known: bool) -> None:
    id, redis_state = submit(store), RedisState(redis)
    Jobs(store).claim_attempt(id, "w")
    redis_state.publish_progress(id, Progress(fraction=0.5))
    job = JobReader(Jobs(store), redis_state if known else RedisState(no_redis), Queue(redis, "q")).now(id)
    assert job.progress.fraction == (0.5 if known else 0.0)


def test_a_queued_job_says_what_it_waits_for(store: Store, redis: Redis, no_redis: Redis) -> None:
    first, second, third = (submit(store) for _ in range(3))
    redis_state, queue = RedisState(redis, "q"), Queue(redis, "q")

    def phase(id: str) -> str:
        return JobReader(Jobs(store), redis_state, queue).now(id).progress.phase

    def phases() -> list[str]:
        queue._turns_until = 0.0  # however soon it is called again
        return [phase(id) for id in (first, second, third)]

    for id in (first, second, third):
        queue.enqueue(id)
    none = "waiting for a worker: none is running"
    assert phases() == [none, f"{none}, and for 1 job before it", f"{none}, and for 2 jobs before it"]
    redis_state.record_heartbeat("v", HANG, starting=True)
    starting = "waiting for a worker that is starting"
    assert phases() == [starting, f"{starting}, and for 1 job before it", f"{starting}, and for 2 jobs before it"]
    redis_state.record_heartbeat("w", HANG)
    assert phases() == ["waiting for a free worker", "waiting for 1 job before it", "waiting for 2 jobs before it"]
    redis.zpopmin("q:waiting:medium")
    Jobs(store).claim_attempt(first, "w")
    assert phases() == ["starting", "waiting for a free worker", "waiting for 1 job before it"]
    fourth = submit(store)
    queue.enqueue(fourth)
    assert phase(fourth) == "waiting for 2 jobs before it", "a job that has just come is looked for"
    assert JobReader(Jobs(store), RedisState(no_redis), Queue(no_redis, "q")).now(second).progress.phase == ""
