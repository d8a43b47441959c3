"""A receiver of webhooks for tests."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Received(NamedTuple):
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Keeps the requests it gets, and answers with ``status``."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.status = 204
        self.url = ""


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.received.append(Received({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.status)
            self.send_header("location", "http://127.0.0.1:9/")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?a=b"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
