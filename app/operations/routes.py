"""Routes of operations: liveness, readiness, metrics, and a page for every type of problem."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from app.errors import PROBLEM_TYPES, RETRY_SECONDS, problem_response
from app.http.answers import HTML, negotiate
from app.http.requests import AuthorizedRoute
from app.http.schemas import Schema, error_responses
from app.operations.problem_pages import PAGES, page_of, text_of
from app.services.wiring import Services, ServicesDep
from storage.errors import NotFound, Unavailable


class Alive(Schema):
    """Liveness of the process."""

    status: str = Field(examples=["live"])


class Ready(Schema):
    """Readiness of the service."""

    status: str = Field(examples=["ready"])
    store: bool
    redis: bool
    workers: int
    """Number of workers that take jobs; while it is 0, jobs wait."""
    workers_starting: int
    """Number of workers that compile or load kernels and do not take jobs yet."""


router = APIRouter(prefix="/v1/health", tags=["health"], route_class=AuthorizedRoute)
problems_router = APIRouter(prefix="/problems", tags=["health"], route_class=AuthorizedRoute)
metrics_router = APIRouter(tags=["metrics"], route_class=AuthorizedRoute)
TEXT = "text/plain"
_PAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Cause and remedy",
        "content": {TEXT: {"schema": {"type": "string"}}, HTML: {"schema": {"type": "string"}}},
    }
}
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "Text format of Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.get("/live")
async def live() -> Alive:
    """Report liveness: the process answers."""
    return Alive(status="live")


@router.get("/ready", response_model=Ready, responses=error_responses(503))
def ready(services: ServicesDep) -> Ready | Response:
    """Report readiness: the store and Redis can be written.

    Models answer and jobs are accepted. Jobs run while `workers` is not 0.
    """
    try:
        return readiness(services)
    except Unavailable as error:
        return problem_response(PROBLEM_TYPES[Unavailable], str(error), headers={"Retry-After": str(RETRY_SECONDS)})


@metrics_router.get("/metrics", response_class=Response, responses=_TEXT)
def metrics(services: ServicesDep) -> Response:
    """Report metrics for Prometheus."""
    return Response(services.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@problems_router.get("/{type}", response_class=Response, responses={**_PAGE, **error_responses(404, 406, 422)})
async def show_problem(request: Request, type: str) -> Response:
    """Show the causes of a type of problem and the remedies, as text or, to a browser, as a page."""
    problem_type = PAGES.get(type)
    if problem_type is None:
        raise NotFound("type of problem", type)
    if negotiate(request, (TEXT, HTML)) == HTML:
        return HTMLResponse(page_of(problem_type))
    return PlainTextResponse(text_of(problem_type))


def readiness(services: Services) -> Ready:
    """The report of a ready gateway; raises Unavailable with the part that is missing."""
    store, workers, starting = services.store_probe.writable(), 0, 0
    try:
        services.queue.ping()
        workers, starting = len(services.redis_state.workers()), len(services.redis_state.starting_workers())
    except Unavailable:
        raise Unavailable(
            "Redis cannot be written" if store else "neither Redis nor the store can be written"
        ) from None
    if store and services.admission.problem is not None:
        raise Unavailable(services.admission.problem)
    if not services.access.ready:
        raise Unavailable("the keys could not be read yet")
    if not store:
        raise Unavailable("the store cannot be written")
    return Ready(status="ready", store=True, redis=True, workers=workers, workers_starting=starting)


def in_a_word(services: Services) -> bytes:
    """``yes``, or the part that is missing; for the supervisor."""
    try:
        readiness(services)
    except Unavailable as error:
        return str(error).encode()
    return b"yes"
