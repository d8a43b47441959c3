"""Reads from the API of Label Studio, whose address the operator sets; no request names another."""

import http.client
import json
import time
import urllib.request
from typing import Any

from core.errors import HalfmoonError

_SECONDS = 60.0
"""seconds for which Label Studio may be silent"""
_TOTAL_SECONDS = 600.0
"""seconds of an answer in all"""
_BLOCK_BYTES = 1 << 18
_ADVICE = {
    401: "HALFMOON_LABEL_STUDIO_TOKEN must be a valid token",
    403: "HALFMOON_LABEL_STUDIO_TOKEN must be a valid token",
    **dict.fromkeys(
        (301, 302, 303, 307, 308),
        "HALFMOON_LABEL_STUDIO_URL must be the address that it leads to, since the token goes nowhere else",
    ),
}


class LabelStudioUnavailable(HalfmoonError):
    """Label Studio does not answer as it should."""


class Client:
    """Reads from Label Studio, by its personal access token or by a token of the former kind."""

    def __init__(self, url: str, token: str, most: int) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._most = most
        self._header: str | None = None
        self._opener = urllib.request.build_opener(_NoRedirects)

    def get(self, path: str) -> Any:
        """The JSON at a path below /api. Raises LabelStudioUnavailable."""
        if self._header is None:
            self._header = self._authorization()
        return self._answer(urllib.request.Request(f"{self._url}/api/{path}", headers={"Authorization": self._header}))

    def _authorization(self) -> str:
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        # a personal access token is exchanged for one that lives some minutes
        body = json.dumps({"refresh": self._token}).encode()
        answer = self._answer(
            urllib.request.Request(f"{self._url}/api/token/refresh", body, {"Content-Type": "application/json"})
        )
        return f"Bearer {field_of(answer, 'access')}"

    def _answer(self, request: urllib.request.Request) -> Any:
        try:
            return json.loads(self._content(request))
        except (OSError, http.client.HTTPException) as error:
            advice = _ADVICE.get(getattr(error, "code", None) or 0)
            raise LabelStudioUnavailable(f"{request.full_url}: {error}" + (f"; {advice}" if advice else "")) from None
        except (ValueError, RecursionError):
            raise LabelStudioUnavailable(f"{request.full_url}: the answer is not JSON") from None

    def _content(self, request: urllib.request.Request) -> bytes:
        end, content = time.monotonic() + _TOTAL_SECONDS, bytearray()
        with self._opener.open(request, timeout=_SECONDS) as answer:
            while block := answer.read1(_BLOCK_BYTES):
                content += block
                if len(content) > self._most:
                    raise LabelStudioUnavailable(
                        f"{request.full_url}: more than HALFMOON_MAX_REQUEST_BYTES, {self._most} bytes"
                    )
                if time.monotonic() > end:
                    raise TimeoutError("timed out")
        return bytes(content)


def field_of(answer: Any, name: str) -> str:
    """A text in an answer. Raises LabelStudioUnavailable where it is not there."""
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, str):
        raise LabelStudioUnavailable(f"an answer of Label Studio has no {name}")
    return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the token to another address."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse it; the answer is an error then."""
