"""What HTTP needs of an application, whatever its domains are; app.services.Services has it all."""

from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from fastapi import Request

from app.http.access import Access
from app.http.limits import Limit
from app.settings import GatewaySettings


class HttpState(Protocol):
    """The part of the services that routes of any domain use to admit a request and to read its body."""

    @property
    def settings(self) -> GatewaySettings:
        """The bounds of bodies, among others."""
        ...

    @property
    def access(self) -> Access:
        """Who may call what."""
        ...

    @property
    def buffer_limit(self) -> Limit:
        """Bytes of bodies in memory."""
        ...

    @property
    def parsing(self) -> ThreadPoolExecutor:
        """Where large bodies are parsed."""
        ...


def state_of(request: Request) -> HttpState:
    """The state of the gateway that got this request."""
    found: HttpState = request.app.state.services
    return found
