"""The command line."""

import pytest

from app.cli.commands import main


def test_without_a_command_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("usage: halfmoon ")
    assert all(f"    {command} " in printed.err for command in ("up", "api", "worker", "doctor", "keys", "backup", "restore", "warm", "demo"))
