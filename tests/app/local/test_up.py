"""The start of the service: a ready process is never given up, and a full disk is waited for."""

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from app.local import up, valkey
from app.local.supervisor import Program, Supervisor
from app.local.up import GATEWAY_TIMEOUT_SECONDS, Plan, ShutdownRequests, Startup
from storage.errors import CannotStart
from tests.waiting import until


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


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor(lambda text: None)
    yield supervisor
    supervisor.stop(supervisor.names(), 10.0)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan with a Valkey that ends at once."""
    (tmp_path / "valkey").mkdir()

    def program(binary: str, folder: Path, socket: Path, environment: Mapping[str, str], lock: int) -> Program:
        return Program("valkey", [sys.executable, "-c", "raise SystemExit(1)"], environment)

    monkeypatch.setattr(valkey, "program", program)
    return Plan(tmp_path, "127.0.0.1", 0, 1, {}, 1.0)


def test_kernels_that_cannot_be_compiled_later_end_no_service(
    plan: Plan, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    shutdown, rest = MagicMock(), map(Mock(side_effect=CannotStart("the kernels cannot be compiled: no room")), [0])
    shutdown.__bool__.side_effect = [False, False, True]
    up._supervise(plan, plan.data, supervisor, Mock(take=lambda: False), shutdown, rest)
    assert "the kernels cannot be compiled: no room" in capsys.readouterr().err


def start(plan: Plan, supervisor: Supervisor) -> None:
    up._start_valkey(plan, plan.data / "valkey.sock", 0, supervisor, ShutdownRequests())


def test_a_valkey_that_ends_is_given_up(plan: Plan, supervisor: Supervisor) -> None:
    with pytest.raises(CannotStart, match="its message is above"):
        start(plan, supervisor)


def test_a_full_disk_is_waited_for(
    plan: Plan, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*given: Any, **named: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "TemporaryFile", full)
        start(plan, supervisor)
    assert (
        "cannot be written: No space left on device; no job is accepted until there is room" in capsys.readouterr().err
    )

    def runs() -> bool:
        supervisor.poll()
        return supervisor.pid("valkey") is not None

    until(runs)


def test_files_that_valkey_cannot_read_are_set_aside(
    tmp_path: Path, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a power failure, after which a file ends with zeros."""
    files = tmp_path / "valkey" / "appendonlydir"
    files.mkdir(parents=True)
    (files / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    (files / "appendonly.aof.1.incr.aof").write_bytes(bytes(1 << 12))
    start(Plan(tmp_path, "127.0.0.1", 0, 1, {}, 1.0), supervisor)
    assert "jobs are queued anew" in capsys.readouterr().err
    assert (tmp_path / "valkey" / valkey.ASIDE / "appendonly.aof.1.incr.aof").exists()


def test_room_is_found(tmp_path: Path) -> None:
    assert valkey.write_problem(tmp_path) is None
    assert valkey.write_problem(tmp_path / "missing") == "No such file or directory"
    assert list(tmp_path.iterdir()) == []
