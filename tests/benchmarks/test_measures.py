"""Foundations of the benchmarks of the service: all formats hold the same documents, and a figure is judged the right
way round.
"""

import socket
import threading
from collections.abc import Callable

import numpy as np
import pytest

from app.codecs.dispatch import body_decoder
from app.settings import GatewaySettings
from benchmarks.base import Figure
from benchmarks.documents import NONZEROS, Documents, as_json, as_ndjson, as_npz, as_svmlight, documents
from benchmarks.load import Connection, Latencies
from tests.stores import sparse

FORMATS: dict[str, Callable[[Documents], bytes]] = {
    "application/json": as_json,
    "application/x-ndjson": as_ndjson,
    "text/x-svmlight": as_svmlight,
    "application/x-npz": as_npz,
}


@pytest.mark.parametrize("media_type", FORMATS)
def test_formats_hold_the_documents(media_type: str) -> None:
    given = documents(1500)
    body = body_decoder({"content-type": media_type}, GatewaySettings().upload_bounds)
    batches = [*body.feed(FORMATS[media_type](given)), *body.finish()]
    indices = np.concatenate([sparse(batch.rows).indices for batch in batches]).reshape(-1, NONZEROS)
    values = np.concatenate([sparse(batch.rows).values for batch in batches]).reshape(-1, NONZEROS)
    np.testing.assert_array_equal(indices, given.indices)
    np.testing.assert_allclose(values, given.values, atol=1e-6)
    assert (np.diff(given.indices, axis=1) > 0).all()


@pytest.mark.parametrize(
    ("at_most", "value", "verdict", "ratio"),
    [
        (True, 2, "reached", "5.0"),
        (True, 4.1, "MISSED", "2.4"),
        (False, 4.1, "reached", "0.4"),
        (False, 2, "MISSED", "0.2"),
    ],
)
def test_a_figure_is_judged(at_most: bool, value: float, verdict: str, ratio: str) -> None:
    row = Figure("x", value, 4, "ms", at_most, rival=10).row()
    assert row[3] == verdict
    assert row[5] == ratio


def test_quantiles() -> None:
    found = Latencies([float(k) for k in range(101)])
    assert found.quantile(0.5) == 50
    assert found.quantile(0.99) == 99


def test_the_client_reads_an_answer_in_pieces_and_refuses_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(
            target=_answer,
            args=(
                server,
                [
                    b"HTTP/1.1 200 OK\r\nContent-",
                    b"Length: 5\r\n\r\nab",
                    b"cde",
                    b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
                ],
            ),
        )
        thread.start()
        connection = Connection(f"http://127.0.0.1:{server.getsockname()[1]}")
        assert connection.send(b"1") == b"abcde"
        with pytest.raises(RuntimeError, match="500"):
            connection.send(b"2")
        connection.close()
        thread.join()


def _answer(server: socket.socket, pieces: list[bytes]) -> None:
    client, _ = server.accept()
    with client:
        client.recv(1)
        for piece in pieces[:3]:
            client.sendall(piece)
        client.recv(1)
        client.sendall(pieces[3])
