"""Whether a gateway is ready: its store and its Redis can be written, and it may use them."""

from app.operations.schemas import Ready
from app.services import Services
from storage.errors import Unavailable


def readiness(services: Services) -> Ready:
    """The report of a ready gateway; raises Unavailable with the part that is missing."""
    store, workers, starting = services.store_probe.writable(), 0, 0
    try:
        services.queue.ping()
        workers, starting = services.queue.workers(), services.queue.starting_workers()
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
