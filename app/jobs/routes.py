"""Routes of jobs: create, list, show, cancel, follow and delete; their events, traces and labels."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, Response, StreamingResponse

from app.codecs.base import SEPARATOR
from app.errors import Unauthenticated
from app.http.access import KEY_ID
from app.http.answers import (
    CSV,
    EXACT,
    NDJSON,
    PARQUET,
    csv_blocks,
    iter_file,
    json_answer,
    negotiate,
    write_parquet,
    written_file,
)
from app.http.requests import (
    CHECK_SECONDS,
    AuthorizedRoute,
    RawRoute,
    in_steps,
    in_thread,
    last_of,
    read_json,
    services_of,
)
from app.http.schemas import (
    DOCUMENTS,
    ENCODING,
    EXTRA,
    NAME,
    Cursor,
    PageSize,
    Separator,
    error_responses,
    json_body,
    left_out,
)
from app.jobs.label_table import Beside, label_columns, label_lines, label_rows
from app.jobs.schemas import JobBody, JobOut, JobPage, Point, Trace
from app.jobs.service import submit
from app.services.job_follower import add_progress
from app.services.wiring import Services, ServicesDep
from core.options.text import TextOptions
from core.registry import OFFERED
from storage.errors import Conflict, RedisUnavailable
from storage.records import Job, JobState

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=RawRoute)

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A repeated request with the same key gives the same job; another request with that key gives "
    "422. When the job was deleted, "
    "the key gives 409 for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
Include = Annotated[
    Literal["fields"] | None,
    Query(description="What stands beside the labels: fields, the extra fields of the documents."),
]
Exact = Annotated[bool, Query(description=EXACT)]
_EXAMPLE = {"dataset": "ds-…", "model": "news", "algorithm": "auto", "options": {"labels_drawn": "random"}, "seed": 0}
_ALGORITHM = {
    "type": "string",
    "enum": list(OFFERED),
    "default": "auto",
    "description": "; ".join(f"{each.name}: {each.title}" for each in OFFERED.values()),
}


_OPTIONS = {
    "description": "Options of the algorithm; each may be left out.",
    "anyOf": [
        each.options.model_json_schema() | {"description": f"Options of `{each.name}`: {each.title}."}
        for each in OFFERED.values()
    ],
}
_TERMS = {
    "description": "How text becomes terms; only for documents that have text.",
    "anyOf": [{"type": "null"}, TextOptions.model_json_schema()],
}
_START = {
    "anyOf": [{"type": "string"}, {"type": "null"}],
    "default": None,
    "description": "Model to start from, as name or name@alias: with some more labels, training takes a fraction of "
    "the time. "
    f"Not for {', '.join(each.name for each in OFFERED.values() if each.start is None)}.",
}
_SUBMIT: dict[str, Any] = {
    **json_body(
        JobBody,
        _EXAMPLE,
        model=NAME,
        documents=DOCUMENTS["properties"]["documents"],
        algorithm=_ALGORITHM,
        options=_OPTIONS,
        text=_TERMS,
        start_from=_START,
    ),
    "parameters": [_KEY, EXTRA, ENCODING],
}
_TEXT = {"schema": {"type": "string"}}
_HEADERS = {
    "Location": {"description": "URL of the job.", **_TEXT},
    "RateLimit-Policy": {
        "description": "Limit on unfinished jobs: of the key, or of all keys if that limit is tighter.",
        **_TEXT,
    },
    "RateLimit": {"description": "Number of unfinished jobs that are still allowed.", **_TEXT},
}
_ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": JobOut, "description": "Accepted and durable", "headers": _HEADERS}
}
_EVENT = {
    "type": "object",
    "title": "Event",
    "description": "An event. Its data are JSON: a Job (`state`) or a Progress (`progress`).",
    "required": ["event", "data"],
    "properties": {"event": {"enum": ["state", "progress"]}, "data": {"type": "string"}},
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`state` and `progress` events until the job has ended",
        "content": {
            "text/event-stream": {
                "schema": {"anyOf": [_EVENT, {"type": "string", "description": "The whole stream."}]},
                "example": 'event: progress\ndata: {"fraction":0.5,"phase":"tsvm, stage 9 of '
                '18","iteration":3,"objective":0.385}\n\n',
            }
        },
    }
}
_LINES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line for each document that was unlabeled",
        "content": {
            NDJSON: {
                "schema": {
                    "type": "string",
                    "description": "A LabeledDocument a line, or of several labels a DocumentLabels.",
                },
                "example": '{"id":"d3","label":"sport","score":1.102,"probability":0.899}\n',
            },
            CSV: {**_TEXT, "example": "id,label,score,probability\nd3,sport,1.102,0.899\n"},
            PARQUET: {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "The same table; needs the extra arrow.",
                }
            },
        },
    }
}


@raw_router.post(
    "",
    status_code=202,
    responses={**_ACCEPTED, **error_responses(404, 408, 409, 413, 415, 422, 429, 503, 507)},
    openapi_extra=_SUBMIT,
)
async def create_job(request: Request) -> Response:
    """Train a model on a dataset, or on documents in the body."""
    services = services_of(request)
    body = await read_json(request, services, JobBody)
    steps = _accepted(
        services, body, request.headers.get("idempotency-key"), request.scope.get(KEY_ID), request.query_params
    )
    try:
        # also without the client: a job is accepted or not, whoever waits for the answer
        return last_of(await in_steps(None, services.pools.store, steps))
    except BaseException:
        # what was begun is removed in a thread, too
        await asyncio.shield(in_thread(services.pools.store, steps.close))
        raise


@router.get("", responses=error_responses(422, 503))
def list_jobs(
    services: ServicesDep,
    state: JobState | None = None,
    model: Annotated[str | None, Query(max_length=128)] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> JobPage:
    """List jobs, newest first.

    A filter that matches few of very many jobs may give a short page that still has a `next_cursor`.
    """
    found, following = services.job_list.page(state, model, limit, cursor)
    add_progress(found, services.redis_state, services.queue)
    warnings = left_out(services.store.damage, r"jobs/[^/]+/(request|outcome|published)\.json")
    return JobPage(jobs=[JobOut.of(job) for job in found], next_cursor=following, warnings=warnings)


@router.get("/{id}", responses=error_responses(404, 422, 503))
def show_job(services: ServicesDep, id: str) -> JobOut:
    """Show a job."""
    job = services.jobs.get(id)
    add_progress([job], services.redis_state, services.queue)
    return JobOut.of(services.version_cache.published(job))


@router.delete("/{id}", status_code=204, response_class=Response, responses=error_responses(404, 409, 422, 503))
def delete_job(services: ServicesDep, id: str) -> None:
    """Delete a finished job with its labels and its trace.

    A model that it has published stays.
    """
    services.jobs.delete(id)


@router.post("/{id}/cancel", status_code=202, responses=error_responses(404, 409, 422, 503, 507))
def cancel_job(services: ServicesDep, id: str) -> JobOut:
    """Cancel a job.

    Its state is `cancelling` until it has stopped, then `cancelled`.
    """
    job = services.jobs.cancel(id)
    # the worker also reads the request to cancel from the store, only later
    with suppress(RedisUnavailable):
        services.redis_state.request_cancel(id)
        services.redis_state.note_change(id)
    return JobOut.of(job)


@router.get("/{id}/events", response_class=Response, responses={**_STREAM, **error_responses(404, 422, 503)})
async def follow_job(request: Request, services: ServicesDep, id: str) -> StreamingResponse:
    """Follow a job by server-sent events: its state and its progress, now and at every change."""
    events = events_of(services.job_follower.follow(id), partial(services.access.check_again, request.scope))
    first = await anext(events)
    return StreamingResponse(
        _chained(first, events),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.get("/{id}/trace", responses=error_responses(404, 422, 503))
def show_trace(services: ServicesDep, id: str) -> Trace:
    """Show the objective by iteration."""
    stored, points = services.jobs.file(services.jobs.get(id), "trace"), []
    if stored is not None:
        points = msgspec.json.decode(stored.read_bytes())
    else:
        with suppress(RedisUnavailable):
            points = services.redis_state.trace(id)
    return Trace(job=id, points=[Point.model_validate(point) for point in points])


@router.get("/{id}/labels", response_class=Response, responses={**_LINES, **error_responses(404, 406, 409, 422, 503)})
async def download_labels(
    request: Request,
    services: ServicesDep,
    id: str,
    include: Include = None,
    exact: Exact = False,
    separator: Separator = SEPARATOR,
) -> Response:
    """Download the labels that a succeeded job has given to unlabeled documents, as NDJSON or, by `Accept`, as a table:
    CSV or Parquet.

    With `include=fields` the extra fields of the documents stand beside them.
    """
    media_type = negotiate(request, (NDJSON, CSV, PARQUET))
    path, beside = await asyncio.to_thread(_labels, services, id, include)
    if media_type == NDJSON:
        return (
            FileResponse(path, media_type=NDJSON)
            if beside is None
            else StreamingResponse(label_lines(path, beside), media_type=NDJSON)
        )
    between = separator if media_type == CSV else None
    columns = await asyncio.to_thread(label_columns, path, beside, between)
    rows = label_rows(path, beside, between)
    if media_type == CSV:
        return StreamingResponse(csv_blocks(columns, rows, exact=exact), media_type=CSV)
    file = await in_thread(services.pools.store, written_file, services.store, partial(write_parquet, columns, rows))
    return StreamingResponse(iter_file(file), media_type=PARQUET)


def _labels(services: Services, id: str, include: str | None) -> tuple[Path, Beside | None]:
    job = services.jobs.get(id)
    path = services.jobs.file(job, "labels") if job.state is JobState.SUCCEEDED else None
    if path is None:
        raise Conflict(f"job {id!r} is {job.state.value}; it has labels when it has succeeded")
    if include is None:
        return path, None
    dataset = job.request.dataset
    return path, Beside(services.datasets.ids(dataset), services.datasets.fields(dataset))


def _accepted(
    services: Services, body: JobBody, key: str | None, key_id: str | None, query: Mapping[str, str]
) -> Generator[Response | None, None, None]:
    """The steps of a submission, and at last its answer."""
    job, allowance = yield from submit(services, body, key, key_id, query)
    add_progress([job], services.redis_state, services.queue)
    headers = {"Location": f"/v1/jobs/{job.request.id}", **allowance.headers()}
    yield json_answer(JobOut.of(job), 202, headers)


async def _chained(first: bytes, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for event in events:
        yield event


KEEPALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment is sent, so that proxies and clients keep the connection."""


async def events_of(jobs: AsyncGenerator[Job, None], check: Callable[[], None]) -> AsyncIterator[bytes]:
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
                while not (await asyncio.wait([waiting], timeout=CHECK_SECONDS))[0]:
                    check()
                    silent += CHECK_SECONDS
                    if silent >= KEEPALIVE_SECONDS:
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
