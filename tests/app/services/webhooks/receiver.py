"""A receiver of webhooks for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.http_servers import Handler, answering_by


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

    class Hook(Handler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(headers, self.posted()))
            self.answer(receiver.status, location="http://127.0.0.1:9/")

    with answering_by(Hook) as url:
        receiver.url = f"{url}/hook?a=b"
        yield receiver
