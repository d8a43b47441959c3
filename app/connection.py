"""A client's connection: uvicorn's, but for patience with heads of requests that never end."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""from the first byte of a request (or from connecting) to the end of its head"""
HEAD_BYTES = 64 << 10
"""that a head may have, roughly: it is looked at as often as bytes come"""


class Connection(HttpToolsProtocol):
    """Ends when the head of a request takes too long or grows too large; else thousands of such clients would fill the table of open files."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        super().data_received(data)
        if self._timer is None:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Called by the parser."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._expect_nothing()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._timer is None:
            self._head_bytes = 0
            self._timer = self.loop.call_later(HEAD_SECONDS, self._refuse, b"408 Request Timeout")

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: bytes) -> None:
        """No route can answer what is no request yet."""
        self._expect_nothing()
        self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
