"""Receivers of webhooks for a storm: one is well, one is slow now and then, one dies again and again for seconds."""

import hmac
import threading
import time
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from typing import Self

from app.services.webhooks.sender import signature
from tests.http_servers import Handler
from tests.storm.ledger import Ledger

_PERIOD_SECONDS = 20.0
_EACH = 5
"""messages of which one finds the slow receiver slow"""


class Receivers:
    """A context manager; ``slow_seconds`` and ``dead_seconds`` of each twenty are those of the two that are ill."""

    def __init__(self, ledger: Ledger, slow_seconds: float, dead_seconds: float) -> None:
        self.ill = threading.Event()
        self.ill.set()
        illnesses = {"well": (0.0, 0.0), "slow": (slow_seconds, 0.0), "dying": (0.0, dead_seconds)}
        self.servers = [_Server(name, ledger, self.ill, *illness) for name, illness in illnesses.items()]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for server in self.servers:
            thread = threading.Thread(target=server.serve_forever, name=server.name, daemon=True)
            thread.start()
            self._stack.callback(server.server_close)
            self._stack.callback(thread.join)
            self._stack.callback(server.shutdown)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, name: str, ledger: Ledger, ill: threading.Event, slow_seconds: float, dead_seconds: float
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name, self.ledger, self.ill = name, ledger, ill
        self.slow_seconds, self.dead_seconds = slow_seconds, dead_seconds
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.secret = ""
        self.count = 0
        ledger.told[name] = []


class _Handler(Handler):
    server: _Server

    def do_POST(self) -> None:
        server = self.server
        body, id, at = (
            self.posted(),
            self.headers["webhook-id"],
            self.headers["webhook-timestamp"],
        )
        server.count += 1
        if server.ill.is_set():
            if time.monotonic() % _PERIOD_SECONDS < server.dead_seconds:
                return  # the connection ends without an answer
            if server.count % _EACH == 0:
                time.sleep(server.slow_seconds)
        signed = hmac.compare_digest(self.headers["webhook-signature"], signature(server.secret, id, int(at), body))
        server.ledger.told[server.name].append(id if signed else f"{id}, signed wrongly")
        self.answer(204)
