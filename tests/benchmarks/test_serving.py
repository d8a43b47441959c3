"""Foundations of the figures of serving: a proxy that loses no connection, and the counts."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from benchmarks import base
from benchmarks.serving.__main__ import section
from benchmarks.serving.balancer import Balancer
from benchmarks.serving.clients import Prediction
from benchmarks.serving.storm import Phase, Plan, Result
from tests.waiting import SOON


@contextmanager
def answering(word: bytes) -> Iterator[int]:
    """A server that answers each connection with a word; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(word + connection.recv(16))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def asked(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=SOON) as connection:
        connection.sendall(b"?")
        text = b""
        while part := connection.recv(16):
            text += part
        return text


def test_connections_go_to_each_in_turn_and_past_one_that_is_not_there() -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(answering(word)) for word in (b"a", b"b"))
        balancer = stack.enter_context(Balancer())
        with socket.create_server(("127.0.0.1", 0)) as gone:
            dead = gone.getsockname()[1]
        for port in (first, dead, second):
            balancer.add(port)
        assert Counter(asked(balancer.port) for _ in range(12)).keys() == {b"a?", b"b?"}
        balancer.remove(first)
        assert {asked(balancer.port) for _ in range(4)} == {b"b?"}


def result(*predictions: Prediction) -> Result:
    phases = [Phase("rolling restart", 0.0, 10.0), Phase("one gateway killed", 10.0, 20.0)]
    return Result(
        list(predictions), phases, Counter({"succeeded": 3}), 0, 0, {"gateway": [0.5, 1.2]}, moved=5.0, versions=(1, 2)
    )


def test_an_old_version_counts_from_when_the_alias_was_set() -> None:
    answered = [
        Prediction(at, at, at + 0.01, 200, version)
        for at, version in ((4.9, 1), (5.1, 1), (5.2, 2), (5.23, 1), (5.3, 2))
    ]
    assert result(*answered).stale_seconds() == pytest.approx(0.23)
    assert result(*answered[:1]).stale_seconds() == 0.0


def test_what_fails_counts_in_the_phase_in_which_it_ended() -> None:
    steady = [Prediction(at / 10, at / 10, at / 10 + 0.01, 200, 1) for at in range(180)]
    found = result(*steady, Prediction(9.95, 9.95, 10.2, None))
    assert [len(found.of(name)) for name in ("rolling restart", "one gateway killed")] == [100, 81]
    page = section(Plan(), found, base.Log())
    assert "| rolling restart | 10 | 100 | 0 |" in page
    assert "| one gateway killed | 10 | 81 | 1 |" in page
    assert "| 3 | 3 succeeded | 0 | 0 |" in page
