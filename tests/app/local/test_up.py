"""The start of the service: what is ready is never given up."""

import time
from typing import Any

import pytest

from app.local import up
from app.local.supervisor import Supervisor
from app.local.up import GATEWAY_TIMEOUT_SECONDS, Startup
from storage.errors import CannotStart


@pytest.mark.parametrize("ready", [False, True])
def test_a_gateway_is_asked_before_it_is_given_up(monkeypatch: pytest.MonkeyPatch, ready: bool) -> None:
    """A step of the warm-up may last longer than the gateway has to become ready; meanwhile nobody asks it."""
    said: list[str] = []
    starting = Startup("http://127.0.0.1:1", Supervisor(said.append), said.append)
    late = starting._deadline + GATEWAY_TIMEOUT_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: late)
    answer: dict[str, Any] | None = {"workers": 0} if ready else None
    monkeypatch.setattr(up, "_health", lambda url: answer)
    if ready:
        starting.poll()
        assert len(said) == 1
        assert said[0].startswith("http://127.0.0.1:1 answers; the workers are starting")
    else:
        with pytest.raises(CannotStart, match="the gateway was not ready within 60 s"):
            starting.poll()
