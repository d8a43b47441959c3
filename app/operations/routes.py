"""Whether the process lives, whether the service can work, and what it measures."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.errors import KINDS, RETRY_SECONDS, problem
from app.http.checked_route import CheckedRoute
from app.http.documented import refusals
from app.operations.schemas import Alive, Ready
from app.services import Has
from workers.errors import Unavailable

router = APIRouter(prefix="/v1/health", tags=["health"], route_class=CheckedRoute)
measures = APIRouter(tags=["metrics"], route_class=CheckedRoute)
_TEXT: dict[int | str, dict[str, Any]] = {200: {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/live")
async def live() -> Alive:
    """The process answers."""
    return Alive(status="live")


@router.get("/ready", response_model=Ready, responses=refusals(503))
def ready(services: Has) -> Ready | Response:
    """The store and Redis can be written."""
    store, workers = services.store.writable(), 0
    try:
        services.queue.ping()
        workers = services.queue.workers()
    except Unavailable:
        return _unready("Redis cannot be written" if store else "neither Redis nor the store can be written")
    if not services.access.known:
        return _unready("the keys could not be read yet")
    return Ready(status="ready", store=True, redis=True, workers=workers) if store else _unready("the store cannot be written")


@measures.get("/metrics", response_class=Response, responses=_TEXT)
def metrics(services: Has) -> Response:
    """What Prometheus collects."""
    return Response(services.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _unready(detail: str) -> Response:
    return problem(KINDS[Unavailable], detail, headers={"Retry-After": str(RETRY_SECONDS)})
