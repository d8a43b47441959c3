"""The command line."""

import signal
from pathlib import Path

import pytest

from app.cli.commands import main
from workers.store import forks, open_store


@pytest.fixture
def kept_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command has a process of its own, and changes it as it likes; this one goes on with other tests, and other tests went before."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(forks, "_user", None)
    # else what the process logs ever after goes to the standard error of this test, which is closed then
    for name in ("app.serve.configure_logging", "workers.worker.run.configure_logging"):
        monkeypatch.setattr(name, lambda *_: None)
    for name in ("sys.setswitchinterval", "app.serve._tune_malloc", "app.serve._raise_open_file_limit"):
        monkeypatch.setattr(name, lambda *_: None)


def test_without_a_command_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("usage: halfmoon ")
    assert all(f"    {command} " in printed.err for command in ("up", "api", "worker", "doctor", "keys", "backup", "restore", "warm", "demo"))


@pytest.mark.usefixtures("kept_process")
@pytest.mark.parametrize("command", [["api", "--port", "0"], ["worker"], ["keys", "list"], ["backup", "backup.tar"]])
def test_a_store_of_a_newer_format_is_refused_in_a_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALFMOON_STORE_URL", f"file://{tmp_path}/store")
    monkeypatch.setenv("HALFMOON_REDIS_URL", f"unix://{tmp_path}/nowhere.sock")
    open_store(f"file://{tmp_path}/store").create("store.json", b'{"id":"store-x","format":99}')
    assert main(command) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("halfmoon: "))
    assert "the store has format 99, which a newer version of halfmoon has written" in line
    assert not (tmp_path / "backup.tar").exists()
