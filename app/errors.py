"""Errors that the gateway itself raises, and the answers to all errors: ``application/problem+json`` (RFC 9457).

HalfmoonError
├── ErrorWithHeaders         an error whose answer needs headers of its own
│   ├── Unauthenticated          401: no key, or none that is valid
│   ├── Forbidden                403: the key lacks the scope
│   ├── TooManyRequests          429: a limit is reached
│   │   └── TooManyConnections
│   └── TooSlow                  408: the body does not come in time
├── InvalidRequest           422: a JSON body or a parameter is not valid
├── UnsupportedMediaType     415
├── NotAcceptable            406
├── CrossSite                403: a page of another site asks
└── Misdirected              421: the Host is not a name of this gateway
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from core.errors import MAX_FAULTS, HalfmoonError
from storage import problems
from storage.errors import (
    Conflict,
    IdempotencyConflict,
    InvalidName,
    LimitExceeded,
    QuotaExceeded,
    StoreDamaged,
    Unavailable,
)
from storage.problems import ProblemType

V2 = "/v2"
"""Path of the Open Inference Protocol, below which errors have its form."""
PROBLEM = "application/problem+json"
RETRY_SECONDS = 1
_MAX_TEXT = 8_000
"""Characters of a text in a problem."""
_CHALLENGE = 'Bearer realm="halfmoon"'


class ErrorWithHeaders(HalfmoonError):
    """An error with headers of its own."""

    def __init__(self, detail: str, headers: Mapping[str, str]) -> None:
        super().__init__(detail)
        self.headers = headers


class Unauthenticated(ErrorWithHeaders):
    """The request has no valid key; ``sent`` if it has one that is not valid."""

    def __init__(self, detail: str, *, sent: bool) -> None:
        super().__init__(detail, {"WWW-Authenticate": _CHALLENGE + (', error="invalid_token"' if sent else "")})


class Forbidden(ErrorWithHeaders):
    """The key does not have a scope that the request needs."""

    def __init__(self, held: Sequence[str], needed: Sequence[str]) -> None:
        challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{" ".join(needed)}"'
        super().__init__(
            f"the key is for {', '.join(held)}; this needs one for {' or '.join(needed)}",
            {"WWW-Authenticate": challenge},
        )


class CrossSite(HalfmoonError):
    """A page of another site makes a browser send a request that changes something."""

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"a page of {origin} may change nothing here; call the gateway from its own page or from a program, or add "
            "the origin of the page to HALFMOON_CORS_ORIGINS, a JSON list"
        )


class Misdirected(HalfmoonError):
    """The Host of the request is not a name of this gateway."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"this gateway is not known by the name {host!r}; call it as localhost or by its address, or add the "
            "name to HALFMOON_ALLOWED_HOSTS, "
            "a JSON list"
        )


class TooManyRequests(ErrorWithHeaders):
    """A limit is reached; ``left`` is the room for a smaller request, ``seconds`` the time to the next try."""

    def __init__(self, name: str, unit: str, most: int, left: int, seconds: int) -> None:
        super().__init__(
            f"{name}: no more than {most} at a time; try again in {seconds} s",
            rate_limit(name, unit, most, left, seconds),
        )


class TooManyConnections(TooManyRequests):
    """More connections are open than allowed."""

    def __init__(self, most: int) -> None:
        super().__init__("connections", "connections", most, 0, RETRY_SECONDS)
        self.headers = {**self.headers, "Connection": "close"}


class TooSlow(ErrorWithHeaders):
    """The body does not come in time."""

    def __init__(self, idle: float, rate: float) -> None:
        super().__init__(
            f"the body came too slowly: {idle:g} s without a byte, or less than {rate:g} bytes a second on average",
            {"Connection": "close"},
        )


class UnsupportedMediaType(HalfmoonError):
    """The body has a media type or an encoding that is not supported."""

    def __init__(self, what: str, known: str) -> None:
        super().__init__(f"{what} is not supported; {known}")


class NotAcceptable(HalfmoonError):
    """The answer is not available in a media type that the request accepts."""


class InvalidRequest(HalfmoonError):
    """A JSON body or a parameter that is not valid; names the field."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}" if field else detail)
        self.field = field
        self.detail = detail


PROBLEM_TYPES: Mapping[type[Exception], ProblemType] = {
    **problems.JOB_PROBLEM_TYPES,
    InvalidName: ProblemType(422, "invalid-name", "The name is not allowed"),
    IdempotencyConflict: ProblemType(422, "idempotency-conflict", "The idempotency key was used for another request"),
    LimitExceeded: ProblemType(413, "limit-exceeded", "More than this installation takes"),
    QuotaExceeded: ProblemType(507, "quota-exceeded", "The store holds as much as it may"),
    Conflict: ProblemType(409, "conflict", "The present state forbids it"),
    Unavailable: ProblemType(503, "unavailable", "A part of the service does not answer"),
    Unauthenticated: ProblemType(401, "unauthenticated", "A valid key is required"),
    Forbidden: ProblemType(403, "forbidden", "The key is not for this"),
    CrossSite: ProblemType(403, "cross-site", "A page of another site asks"),
    Misdirected: ProblemType(421, "misdirected", "The request is for another host"),
    NotAcceptable: ProblemType(406, "not-acceptable", "The answer is not available in that form"),
    TooManyRequests: ProblemType(429, "too-many", "Too much at a time"),
    TooSlow: ProblemType(408, "too-slow", "The body did not come in time"),
    InvalidRequest: ProblemType(422, "invalid-request", "The request is not valid"),
    UnsupportedMediaType: ProblemType(415, "unsupported-media-type", "The type of the body is not supported"),
}
"""The problem type of every error, by class."""


def rate_limit(name: str, unit: str, most: int, left: int, seconds: int | None = None) -> dict[str, str]:
    """The rate-limit headers of a limit; with ``seconds`` also when to try again."""
    headers = {"RateLimit-Policy": f'"{name}";q={most};qu="{unit}"', "RateLimit": f'"{name}";r={max(left, 0)}'}
    return (
        headers
        if seconds is None
        else {**headers, "RateLimit": f"{headers['RateLimit']};t={seconds}", "Retry-After": str(seconds)}
    )


def problem_response(
    problem_type: ProblemType,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem of this type; ``errors`` names single documents or fields."""
    content = {
        "type": f"/problems/{problem_type.type}",
        "title": problem_type.title,
        "status": problem_type.status,
        "detail": shortened(detail),
    }
    named = [{name: shortened(text) for name, text in each.items()} for each in (errors or [])[:MAX_FAULTS]]
    body = msgspec.json.encode(content | ({"errors": named} if named else {}))
    return Response(body, problem_type.status, headers, PROBLEM)


def shortened(text: str, most: int = _MAX_TEXT) -> str:
    """A text that may quote the request, cut so that an answer, or a line of the log, is not as long as the request."""
    return text if len(text) <= most else f"{text[:most]}…"


def error_response(error: HalfmoonError) -> Response:
    """The answer to an error. The detail of an internal error is only logged."""
    problem_type = problems.problem_type_of(error, PROBLEM_TYPES)
    detail = "the failure has been logged" if problem_type.status == HTTPStatus.INTERNAL_SERVER_ERROR else str(error)
    if isinstance(error, InvalidRequest):
        faults = [{"document": "", "field": error.field, "detail": error.detail}]
    else:
        faults = problems.faults_of(error)
    headers: Mapping[str, str] | None = None
    if isinstance(error, ErrorWithHeaders):
        headers = error.headers
    elif problem_type.status == HTTPStatus.SERVICE_UNAVAILABLE and not isinstance(error, StoreDamaged):
        headers = {"Retry-After": str(RETRY_SECONDS)}
    return problem_response(problem_type, detail, faults, headers)


def in_form_for(path: str, response: Response) -> Response:
    """A problem in the form that a path has: below /v2 the Open Inference Protocol's."""
    if not f"{path}/".startswith(f"{V2}/"):
        return response
    problem, status = msgspec.json.decode(response.body), response.status_code
    headers = {
        name: value for name, value in response.headers.items() if name not in ("content-type", "content-length")
    }
    status = HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    return Response(msgspec.json.encode({"error": problem["detail"]}), status, headers, "application/json")
