"""The command line."""

import argparse
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import commands
from app.cli.commands import main
from app.serve import GARBAGE_THRESHOLDS
from storage.store import forks, open_store
from tests.there import there


@pytest.fixture
def kept_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command has a process of its own, and changes it as it likes; this one goes on with other tests, and other
    tests went before.
    """
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(forks, "_user", None)
    # else what the process logs ever after goes to the standard error of this test, which is closed then
    for name in ("app.serve.configure_logging", "workers.worker.run.configure_logging"):
        monkeypatch.setattr(name, lambda *_: None)
    for name in ("sys.setswitchinterval", "gc.set_threshold", "app.serve._tune_malloc", "app.serve.resource.setrlimit"):
        monkeypatch.setattr(name, lambda *_: None)


def test_without_a_command_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("usage: halfmoon ")
    assert all(
        f"    {command} " in printed.err
        for command in ("up", "api", "worker", "doctor", "keys", "backup", "restore", "warm", "demo")
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["up", "--port", "x"], "argument --port: 'x' is no port: these are numbers from 0 to 65535"),
        (["up", "--port", "65536"], "argument --port: '65536' is no port"),
        (["up", "--workers", "0"], "argument --workers: '0' is not a number of at least 1"),
        (["trian", "tickets.csv"], "; did you mean 'train'?"),
        (
            ["train", "tickets.csv", "--txt", "body"],
            "halfmoon train: error: unknown argument --txt; did you mean '--text'?",
        ),
        (
            ["predict", "news", "new.csv", "--out", "out.xlsx"],
            "argument --out: 'out.xlsx': the end of the name says what is written",
        ),
        (["predict", "news", "new.csv", "--out", "out.parquet"], "it may be .csv, .ndjson, .jsonl"),
        (["label", "tickets.csv", "--out", "nowhere/out.csv"], "argument --out: there is no folder 'nowhere'"),
        (["cluster", "--workers", "two"], "argument --workers: 'two' is not a number of at least 1"),
    ],
)
def test_arguments_that_cannot_be_are_named(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(command)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["watch", "job-1", "--key-file", "no.key"], ["demo", "--url", "http://127.0.0.1:9", "--key-file", "no.key"]],
)
def test_a_file_that_is_missing_is_named(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 1
    assert capsys.readouterr().err == "halfmoon: no.key: No such file or directory\n"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """As in ``halfmoon label … | head -1``, in a process of its own; its output is closed before it is written."""
    script = (
        "import sys\nfrom app.cli import commands, doctor\n"
        "doctor.report = lambda findings: print('x' * 100_000) or 0\nsys.exit(commands.main(['doctor']))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        there(process.stdout).close()
        assert there(process.stderr).read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_examples_are_commands() -> None:
    """Whatever a help text shows as an example can be parsed."""
    found = 0
    for parser in (*parsers(commands._parser()),):
        for example in re.findall(r"example: (halfmoon [^>&|]*)", parser.epilog or ""):
            commands._parser().parse_args(shlex.split(example)[1:])
            found += 1
    assert found >= 10


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and the parsers of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


@pytest.mark.usefixtures("kept_process")
@pytest.mark.parametrize("command", [["api", "--port", "0"], ["worker"], ["keys", "list"], ["backup", "backup.tar"]])
def test_a_store_of_a_newer_format_is_refused_in_a_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALFMOON_STORE_URL", f"file://{tmp_path}/store")
    monkeypatch.setenv("HALFMOON_REDIS_URL", f"unix://{tmp_path}/nowhere.sock")
    open_store(f"file://{tmp_path}/store").create("store.json", b'{"id":"store-x","format":99}')
    thresholds: list[tuple[int, ...]] = []
    monkeypatch.setattr("gc.set_threshold", lambda *given: thresholds.append(given))
    assert main(command) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("halfmoon: "))
    assert "the store has format 99, which a newer version of halfmoon has written" in line
    assert not (tmp_path / "backup.tar").exists()
    assert thresholds == [GARBAGE_THRESHOLDS] * (command[0] == "api"), "a worker's arrays go back without delay"
