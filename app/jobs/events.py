"""Server-sent events of a job."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from app.errors import Unauthenticated
from app.http.route_classes import CHECK_SECONDS
from app.jobs.schemas import JobOut
from storage.records import Job

KEEPALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment is sent, so that proxies and clients keep the connection."""


def _always_valid() -> None:
    """Check no key."""


async def events_of(
    jobs: AsyncGenerator[Job, None], check: Callable[[], None] = _always_valid, keepalive: float = KEEPALIVE_SECONDS
) -> AsyncIterator[bytes]:
    """The stream: an event ``state`` at a change of state, ``progress`` at a change of progress, and comments in
    between.

    ``check`` is called every second; the stream ends when it raises Unauthenticated.
    """
    before: Job | None = None
    async with aclosing(jobs):
        while True:
            waiting = asyncio.ensure_future(anext(jobs, None))
            silent = 0.0
            try:
                while not (await asyncio.wait([waiting], timeout=min(keepalive, CHECK_SECONDS)))[0]:
                    check()
                    silent += min(keepalive, CHECK_SECONDS)
                    if silent >= keepalive:
                        silent = 0.0
                        yield b": still here\n\n"
                check()
            except Unauthenticated as error:
                yield f": {error}\n\n".encode()
                return
            finally:
                if not waiting.done():
                    waiting.cancel()
                    await asyncio.wait([waiting])
            job = waiting.result()
            if job is None:
                return
            yield _text(job, before)
            before = job


def _text(job: Job, before: Job | None) -> bytes:
    text = ""
    if before is None or job.progress != before.progress:
        text += f"event: progress\ndata: {job.progress.model_dump_json()}\n\n"
    if before is None or (job.state, job.attempt) != (before.state, before.attempt):
        text += f"event: state\ndata: {JobOut.of(job).model_dump_json()}\n\n"
    return (text or ": unchanged\n\n").encode()
