"""The part of the application state that HTTP needs; ``app.services.Services`` provides it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from fastapi import Request

from app.http.access import Access
from app.http.limits import Limit
from app.settings import GatewaySettings


class HttpState(Protocol):
    """The services that a route of any domain needs to authorize a request and to read its body."""

    @property
    def settings(self) -> GatewaySettings:
        """Settings, among them the bounds of bodies."""
        ...

    @property
    def access(self) -> Access:
        """API keys and what they allow."""
        ...

    @property
    def buffer_limit(self) -> Limit:
        """Limit on bytes of bodies and answers in memory."""
        ...

    @property
    def parse_pool(self) -> ThreadPoolExecutor:
        """Threads that parse large bodies."""
        ...


def state_of(request: Request) -> HttpState:
    """The state of the gateway that handles this request."""
    found: HttpState = request.app.state.services
    return found
