"""Questions about one process of several at an address."""

import os
from pathlib import Path

from app.http.sockets.listener import METRICS, READY, Processes, ask, processes, socket_path


def test_a_process_answers_what_it_is_asked(tmp_path: Path) -> None:
    with Processes(tmp_path, several=True).answering(lambda: b"yes", lambda: b"figures"):
        assert processes(tmp_path) == [os.getpid()]
        assert ask(tmp_path, os.getpid(), READY) == b"yes"
        assert ask(tmp_path, os.getpid(), METRICS) == b"figures"
        assert ask(tmp_path, os.getpid(), b"what else") == b""
        assert ask(tmp_path, os.getpid(), b"x" * 1000) in (b"", None)
    assert processes(tmp_path) == []


def test_an_answer_that_fails_ends_nothing(tmp_path: Path) -> None:
    def fails() -> bytes:
        raise ValueError("no figures")

    with Processes(tmp_path, several=True).answering(lambda: b"yes", fails):
        assert ask(tmp_path, os.getpid(), METRICS) == b""
        assert ask(tmp_path, os.getpid(), READY) == b"yes"


def test_the_dead_are_left_out_and_their_files_are_no_hindrance(tmp_path: Path) -> None:
    for process in (1, os.getpid()):
        socket_path(tmp_path, process).touch()
    (tmp_path / "valkey.sock").touch()
    assert Processes(tmp_path, several=True).metrics_of_others() == {}
    with Processes(tmp_path, several=True).answering(lambda: b"yes", lambda: b""):
        assert ask(tmp_path, os.getpid(), READY) == b"yes"
