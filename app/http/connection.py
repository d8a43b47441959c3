"""A client's connection: uvicorn's, but for patience with heads of requests that never end and with answers that nobody reads."""

import asyncio
import socket
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http.middleware import CHUNK_BYTES, CONNECTIONS

HEAD_SECONDS = 10.0
"""from the first byte of a request (or from connecting) to the end of its head"""
HEAD_BYTES = 64 << 10
"""that a head may have, roughly: it is looked at as often as bytes come"""

ANSWER_SECONDS = 30.0
"""for which what waits in memory for the client (a piece of the answer, see ``app.http.middleware``) may stay there before it is given up"""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Connection(HttpToolsProtocol):
    """Ends when the head of a request takes too long or grows too large, or when the client does not read what it has asked for.

    Else thousands of such clients would fill the table of open files, and the memory.
    """

    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._hold_little(transport.get_extra_info("socket"))
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._expect_nothing()
        self._was_read()
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
        self.scope[CONNECTIONS] = len(self.connections)  # type: ignore[literal-required]
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Called by the transport when the client does not read as quickly as it is answered."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """Called by the transport when most of that was read."""
        self._was_read()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Called when the last of an answer is on its way."""
        super().on_response_complete()
        self._expect_end()

    def timeout_keep_alive_handler(self) -> None:
        """Called when no other request has come."""
        super().timeout_keep_alive_handler()
        self._expect_end()

    def _expect_head(self) -> None:
        if self._timer is None:
            self._head_bytes = 0
            self._timer = self.loop.call_later(HEAD_SECONDS, self._refuse, b"408 Request Timeout")

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hold_little(self, connected: socket.socket) -> None:
        """Have the system take little more than the client is ready for.

        Left alone it takes megabytes for each client, and tells that there is room for more only when a third of them was read: slow readers
        would look as if they did not read.
        """
        if connected.family != socket.AF_UNIX and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2 * CHUNK_BYTES)

    def _expect_end(self) -> None:
        """A transport that is closed waits for ever for what is still to be read."""
        if self.transport.is_closing():
            self._expect_reading()

    def _expect_reading(self) -> None:
        if self._unread is None:
            self._unread = self.loop.call_later(ANSWER_SECONDS, self._give_up)

    def _was_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        _log.warning("a client does not read its answer", bytes=self.transport.get_write_buffer_size())
        self.transport.abort()

    def _refuse(self, status: bytes) -> None:
        """No route can answer what is no request yet."""
        self._expect_nothing()
        self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
        self._expect_end()
