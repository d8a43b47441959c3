"""Following jobs: everybody hears of every change, and a job is looked at once however many listen."""

import asyncio
import time
from collections.abc import Callable

import pytest
from redis import Redis

from app.services.job_follower import JobFollower, job_now
from tests.waiting import HANG
from tests.workers.conftest import submit, success
from workers.contract import Job, JobState, Progress
from workers.errors import NotFound
from workers.queue.redis_state import RedisState
from workers.repositories.jobs import Jobs
from workers.store import Store


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
        job_follower = JobFollower(look, 0.02)
        listeners = [asyncio.create_task(listen(job_follower, states)) for states in heard]
        steps: tuple[Callable[[], object], ...] = (
            lambda: jobs.claim_attempt(id, "w"),
            lambda: jobs.cancel(id),
            lambda: jobs.record_outcome(id, success(store)),
            lambda: jobs.publish(id),
        )
        for number, step in enumerate(steps, 1):
            async with asyncio.timeout(HANG):
                while min(map(len, heard)) < number:
                    await asyncio.sleep(0.01)
            step()
        await asyncio.gather(*listeners)
        assert job_follower._channels == {}

    asyncio.run(scene())
    path = [JobState.QUEUED, JobState.RUNNING, JobState.CANCELLING, JobState.RUNNING, JobState.SUCCEEDED]
    assert heard == [path] * 50
    # never sooner than 20 ms after the last, however many listen
    assert len(looks) <= 1 + (looks[-1] - looks[0]) / 0.02


def test_a_listener_that_leaves_stops_the_looking(store: Store) -> None:
    id = submit(store)
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


def test_unknown_jobs_are_told_to_every_listener(store: Store) -> None:
    async def scene() -> None:
        job_follower = JobFollower(Jobs(store).get, 0.01)
        answers = await asyncio.gather(*(states(job_follower, "job-000000000000000000000000") for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [NotFound] * 3

    asyncio.run(scene())


def test_a_final_job_is_told_once(store: Store) -> None:
    id = submit(store)
    Jobs(store).cancel(id)

    async def scene() -> list[JobState]:
        job_follower = JobFollower(Jobs(store).get, 0.01)
        return [*await states(job_follower, id), *await states(job_follower, id)]

    assert asyncio.run(scene()) == [JobState.CANCELLED] * 2


@pytest.mark.parametrize("known", [True, False])
def test_progress_belongs_to_a_running_job(store: Store, redis: Redis, no_redis: Redis, known: bool) -> None:
    id, redis_state = submit(store), RedisState(redis)
    Jobs(store).claim_attempt(id, "w")
    redis_state.publish_progress(id, Progress(fraction=0.5))
    told = job_now(Jobs(store), redis_state if known else RedisState(no_redis), id)
    assert told.progress.fraction == (0.5 if known else 0.0)
