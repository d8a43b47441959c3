"""What the gateway itself refuses, and errors as answers. They are ``application/problem+json`` (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from core.errors import MAX_FAULTS, HalfmoonError
from workers import problems
from workers.problems import Kind

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


KINDS: Mapping[type[Exception], Kind] = {
    **problems.KINDS,
    InvalidRequest: Kind(422, "invalid-request", "The request is not valid"),
    UnsupportedMediaType: Kind(415, "unsupported-media-type", "The body is of a type that is not read"),
}


def problem(kind: Kind, detail: str, errors: list[dict[str, str]] | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as the contract has it; ``errors`` only where single documents or fields are named."""
    content = {"type": f"/problems/{kind.type}", "title": kind.title, "status": kind.status, "detail": detail}
    body = msgspec.json.encode(content | ({"errors": errors[:MAX_FAULTS]} if errors else {}))
    return Response(body, kind.status, headers, PROBLEM)


def answer(error: HalfmoonError) -> Response:
    """The response to an error of the domain."""
    kind = problems.kind_of(error, KINDS)
    headers = {"Retry-After": str(RETRY_SECONDS)} if kind.status == HTTPStatus.SERVICE_UNAVAILABLE else None
    detail = "the failure has been logged" if kind.status == HTTPStatus.INTERNAL_SERVER_ERROR else str(error)
    return problem(kind, detail, _named_by(error), headers)


def _named_by(error: HalfmoonError) -> list[dict[str, str]]:
    if isinstance(error, InvalidRequest):
        return [{"document": "", "field": error.field, "detail": error.detail}]
    return problems.named_by(error)
