"""Start of ``halfmoon up``: polls the readiness of the gateway and the workers, and reports each step once."""

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from app.local.supervisor import Supervisor
from storage.errors import CannotStart

GATEWAY_TIMEOUT_SECONDS = 60.0
"""seconds within which the gateway must be ready for the first time"""
_HEALTH_TIMEOUT_SECONDS = 2.0


class Startup:
    """Progress of the start. ``complete`` becomes true when the gateway answers and a worker takes jobs."""

    def __init__(self, url: str, supervisor: Supervisor, report: Callable[[str], None]) -> None:
        self.supervisor = supervisor
        self.complete = False
        self._url = url
        self._report = report
        self._gateway_ready = False
        self._deadline = time.monotonic() + GATEWAY_TIMEOUT_SECONDS

    def poll(self) -> None:
        """Poll the children and the health of the service.

        Raises CannotStart when a child exits before the gateway is ready for the first time, or when that takes too
        long. Later, the supervisor restarts what exits.
        """
        health = _health(self._url)
        if self._gateway_ready:
            self.supervisor.poll()
        elif exited := self.supervisor.exited():
            raise CannotStart(f"{exited[0]} ended while the service was starting; its message is above")
        elif (
            health is None and time.monotonic() > self._deadline
        ):  # a step of the warm-up may have lasted longer: the gateway is asked first
            raise CannotStart(f"the gateway was not ready within {GATEWAY_TIMEOUT_SECONDS:g} s")
        if health is None or self.complete:
            return
        if health["workers"]:
            self.complete = True
            print(f"Halfmoon is ready: {self._url}", flush=True)
            self._report(f"every call is described at {self._url}/docs; Ctrl-C stops the service")
        elif not self._gateway_ready:
            self._report(
                f"{self._url} answers; the workers are starting, and jobs wait for them (the first start compiles, "
                "which may take a minute)"
            )
        self._gateway_ready = True


def _health(url: str) -> Any:
    """The answer of a gateway that is ready; None of one that is not."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/v1/health/ready", timeout=_HEALTH_TIMEOUT_SECONDS) as answer:
            return json.load(answer)
    except (OSError, ValueError):  # URLError, HTTPError and time-outs are OSErrors
        return None
