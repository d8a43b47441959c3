"""What the gateway itself refuses, and errors as answers. They are ``application/problem+json`` (RFC 9457)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from core.errors import MAX_FAULTS, HalfmoonError
from workers import problems
from workers.problems import Kind

V2 = "/v2"
"""Below this path errors have the form of the Open Inference Protocol."""
PROBLEM = "application/problem+json"
RETRY_SECONDS = 1
_LONGEST = 8_000
"""characters of a text in a problem"""
_CHALLENGE = 'Bearer realm="halfmoon"'


class Refusal(HalfmoonError):
    """A refusal that says more in the headers of its answer."""

    def __init__(self, detail: str, headers: Mapping[str, str]) -> None:
        super().__init__(detail)
        self.headers = headers


class Unauthenticated(Refusal):
    """Nobody is known to make this request."""

    def __init__(self, detail: str, *, sent: bool) -> None:
        super().__init__(detail, {"WWW-Authenticate": _CHALLENGE + (', error="invalid_token"' if sent else "")})


class Forbidden(Refusal):
    """The key that was sent is not for this."""

    def __init__(self, held: Sequence[str], needed: Sequence[str]) -> None:
        challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{" ".join(needed)}"'
        super().__init__(f"the key is for {', '.join(held)}; this needs one for {' or '.join(needed)}", {"WWW-Authenticate": challenge})


class Misdirected(HalfmoonError):
    """A request for a name that is not this machine's."""

    def __init__(self, host: str) -> None:
        super().__init__(f"this gateway is for callers on its own machine, who know it as localhost, not as {host!r}; see HALFMOON_ACCESS")


class TooMany(Refusal):
    """Too much of something at this time; ``left`` is what a smaller request might still get, ``seconds`` when to come again."""

    def __init__(self, name: str, unit: str, most: int, left: int, seconds: int) -> None:
        super().__init__(f"{name}: no more than {most} at a time; try again in {seconds} s", rate_limit(name, unit, most, left, seconds))


class TooManyConnections(TooMany):
    """More clients are connected than may be."""

    def __init__(self, most: int) -> None:
        super().__init__("connections", "connections", most, 0, RETRY_SECONDS)
        self.headers = {**self.headers, "Connection": "close"}


class TooSlow(Refusal):
    """A body that does not come."""

    def __init__(self, idle: float, rate: float) -> None:
        super().__init__(
            f"the body came too slowly: {idle:g} s without a byte, or on the whole less than {rate:g} bytes a second", {"Connection": "close"}
        )


class UnsupportedMediaType(HalfmoonError):
    """A body of a type or encoding that is not read."""

    def __init__(self, what: str, known: str) -> None:
        super().__init__(f"{what} is not supported; {known}")


class NotAcceptable(HalfmoonError):
    """An answer is wanted in a form that it does not have."""


class InvalidRequest(HalfmoonError):
    """A JSON body or a parameter that is not as the contract has it; names the field."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}" if field else detail)
        self.field = field
        self.detail = detail


KINDS: Mapping[type[Exception], Kind] = {
    **problems.KINDS,
    Unauthenticated: Kind(401, "unauthenticated", "A valid key is needed"),
    Forbidden: Kind(403, "forbidden", "The key is not for this"),
    Misdirected: Kind(421, "misdirected", "The request is for another name"),
    NotAcceptable: Kind(406, "not-acceptable", "The answer does not come in that form"),
    TooMany: Kind(429, "too-many", "Too much at a time"),
    TooSlow: Kind(408, "too-slow", "The body did not come in time"),
    InvalidRequest: Kind(422, "invalid-request", "The request is not valid"),
    UnsupportedMediaType: Kind(415, "unsupported-media-type", "The body is of a type that is not read"),
}


def rate_limit(name: str, unit: str, most: int, left: int, seconds: int | None = None) -> dict[str, str]:
    """The headers that tell of a quota; with ``seconds``, also when to come again."""
    told = {"RateLimit-Policy": f'"{name}";q={most};qu="{unit}"', "RateLimit": f'"{name}";r={max(left, 0)}'}
    return told if seconds is None else {**told, "RateLimit": f"{told['RateLimit']};t={seconds}", "Retry-After": str(seconds)}


def problem(kind: Kind, detail: str, errors: list[dict[str, str]] | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as the contract has it; ``errors`` only where single documents or fields are named."""
    content = {"type": f"/problems/{kind.type}", "title": kind.title, "status": kind.status, "detail": _shortened(detail)}
    named = [{name: _shortened(text) for name, text in each.items()} for each in (errors or [])[:MAX_FAULTS]]
    body = msgspec.json.encode(content | ({"errors": named} if named else {}))
    return Response(body, kind.status, headers, PROBLEM)


def _shortened(text: str) -> str:
    """What was sent may be named as it was sent, whatever it was: an answer need not be as long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def answer(error: HalfmoonError) -> Response:
    """The response to an error of the domain."""
    kind = problems.kind_of(error, KINDS)
    detail = "the failure has been logged" if kind.status == HTTPStatus.INTERNAL_SERVER_ERROR else str(error)
    return problem(kind, detail, _named_by(error), _headers(error, kind))


def in_form_of(path: str, response: Response) -> Response:
    """A problem in the form that those expect who call a path."""
    return _as_v2(response) if f"{path}/".startswith(f"{V2}/") else response


def _as_v2(response: Response) -> Response:
    """A problem in the form of the Open Inference Protocol."""
    told = msgspec.json.decode(response.body)
    kept = {name: value for name, value in response.headers.items() if name not in ("content-type", "content-length")}
    status = HTTPStatus.BAD_REQUEST if response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY else response.status_code
    return Response(msgspec.json.encode({"error": told["detail"]}), status, kept, "application/json")


def _headers(error: HalfmoonError, kind: Kind) -> Mapping[str, str] | None:
    if isinstance(error, Refusal):
        return error.headers
    return {"Retry-After": str(RETRY_SECONDS)} if kind.status == HTTPStatus.SERVICE_UNAVAILABLE else None


def _named_by(error: HalfmoonError) -> list[dict[str, str]]:
    if isinstance(error, InvalidRequest):
        return [{"document": "", "field": error.field, "detail": error.detail}]
    return problems.named_by(error)
