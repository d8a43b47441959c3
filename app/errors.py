"""What the gateway itself refuses, and the one table from errors to HTTP. Answers are ``application/problem+json`` (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

import msgspec
from starlette.responses import Response

from app.codecs.base import MAX_FAULTS
from core.errors import HalfmoonError, InvalidDocuments, InvalidOption, UnknownAlgorithm
from workers import errors as shared

PROBLEM = "application/problem+json"
RETRY_SECONDS = 1


class UnsupportedMediaType(HalfmoonError):
    """A body of a type or encoding that is not read."""

    def __init__(self, what: str, known: str) -> None:
        super().__init__(f"{what} is not supported; {known}")


class InvalidRequest(HalfmoonError):
    """A JSON body or a parameter that is not as the contract has it; names the field."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}" if field else detail)
        self.field = field
        self.detail = detail


class Kind(NamedTuple):
    """How errors of one class are answered."""

    status: HTTPStatus
    type: str
    title: str


KINDS: dict[type[HalfmoonError], Kind] = {
    InvalidDocuments: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-documents", "The documents cannot be used"),
    InvalidOption: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-option", "An option is not valid"),
    UnknownAlgorithm: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-algorithm", "There is no such algorithm"),
    InvalidRequest: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", "The request is not valid"),
    UnsupportedMediaType: Kind(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body is of a type that is not read"),
    shared.InvalidName: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-name", "The name is not allowed"),
    shared.IdempotencyConflict: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency-conflict", "The idempotency key was used for another request"),
    shared.LimitExceeded: Kind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "limit-exceeded", "More than this installation takes"),
    shared.NotFound: Kind(HTTPStatus.NOT_FOUND, "not-found", "Not found"),
    shared.Conflict: Kind(HTTPStatus.CONFLICT, "conflict", "The present state forbids it"),
    shared.StoreFull: Kind(HTTPStatus.INSUFFICIENT_STORAGE, "insufficient-storage", "The store has no room left"),
    shared.Unavailable: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "A part of the service does not answer"),
    HalfmoonError: Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "The service failed"),
}


def kind_of(error: HalfmoonError) -> Kind:
    """The row of the error's nearest class."""
    return next(KINDS[ancestor] for ancestor in type(error).__mro__ if ancestor in KINDS)


def problem(kind: Kind, detail: str, errors: list[dict[str, str]] | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as the contract has it; ``errors`` only where single documents or fields are named."""
    content = {"type": f"/problems/{kind.type}", "title": kind.title, "status": int(kind.status), "detail": detail}
    body = msgspec.json.encode(content | ({"errors": errors[:MAX_FAULTS]} if errors else {}))
    return Response(body, kind.status, headers, PROBLEM)


def answer(error: HalfmoonError) -> Response:
    """The response to an error of the domain."""
    kind = kind_of(error)
    headers = {"Retry-After": str(RETRY_SECONDS)} if kind.status == HTTPStatus.SERVICE_UNAVAILABLE else None
    detail = "the failure has been logged" if kind.status == HTTPStatus.INTERNAL_SERVER_ERROR else str(error)
    return problem(kind, detail, _named(error), headers)


def _named(error: HalfmoonError) -> list[dict[str, str]] | None:
    match error:
        case InvalidDocuments():
            return [fault._asdict() for fault in error.faults]
        case InvalidOption():
            return [{"document": "", "field": f"options.{error.field}", "detail": error.detail}]
        case InvalidRequest():
            return [{"document": "", "field": error.field, "detail": error.detail}]
        case UnknownAlgorithm():
            return [{"document": "", "field": "algorithm", "detail": str(error)}]
    return None
