"""The HTTP connection of uvicorn with time-outs: for request heads that do not end, and for answers that the client
does not read.
"""

import asyncio
import socket
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http.middleware import BODY_COMPLETE, CHUNK_BYTES, CONNECTIONS

HEAD_SECONDS = 10.0
"""Seconds from the first byte of a request, or from connecting, to the end of its head."""
HEAD_BYTES = 64 << 10
"""Bytes of a head, approximately: they are counted as they come, in parts of PART_BYTES."""
PART_BYTES = 16 << 10
"""Bytes that are parsed at a time, but for those of a body of known length. What was read beyond them waits while
pipelined requests do."""

LINGER_SECONDS = 1.0
"""Seconds for which an idle connection stays open after a signal to stop. A request that was on its way then is
answered."""
WRITE_SECONDS = 30.0
"""Seconds for which a chunk of an answer (see ``app.http.middleware``) may wait for the client to read it."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Connection(HttpToolsProtocol):
    """A connection that is closed when a request head is too slow or too large, or when the client does not read its
    answer.

    Without these time-outs, thousands of such clients would exhaust file descriptors and memory. Requests that come
    before (pipelining) are answered first, and of what follows no more is parsed until then.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _in_head = False
    """Whether the head of a request has begun, and not ended. Most come whole, and start no timer."""
    _head_bytes = 0
    _body_left = 0
    """Bytes of the body that are still to come, where its length is known. They are parsed as they come, uncut."""
    _refusal: bytes | None = None
    """Status with which the connection ends when the requests before are answered."""

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._unparsed = bytearray()
        connected = transport.get_extra_info("socket")
        # by default the system buffers megabytes for each client, and reports room only after a third of them was read:
        # a slow reader would then look like one that does not read
        if connected.family != socket.AF_UNIX and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2 * CHUNK_BYTES)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._cancel_head_timer()
        self._cancel_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        free = not (self._unparsed or self.pipeline or self._refusal or self.transport.is_closing())
        if free and len(data) <= max(PART_BYTES, self._body_left):
            self._parse(data)
        elif self._refusal is None:
            self._unparsed += data
            self._parse_waiting()

    def _parse_waiting(self) -> None:
        """Parse the bytes so far, up to the first pipelined request that has to wait."""
        while self._unparsed and not self.pipeline and self._refusal is None and not self.transport.is_closing():
            size = max(PART_BYTES, self._body_left)
            part = bytes(memoryview(self._unparsed)[:size])
            del self._unparsed[:size]
            self._parse(part)

    def _parse(self, part: bytes) -> None:
        super().data_received(part)
        if self._in_head:
            self._start_head_timer()
        if self._head_timer is not None:
            self._head_bytes += len(part)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Called by the parser of uvicorn."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Called by the parser of uvicorn."""
        self._in_head = False
        self._cancel_head_timer()
        self.scope[CONNECTIONS] = len(self.connections)  # type: ignore[literal-required]
        self._body_left = int(next((value for name, value in self.headers if name == b"content-length"), 0))
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Called by the parser of uvicorn. A part that none waits before is kept as it is, and not copied twice."""
        self._body_left -= len(body)
        cycle: Any = self.cycle
        if not cycle.body:
            cycle.body = b""
        elif isinstance(cycle.body, bytes):
            cycle.body = bytearray(cycle.body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Called by the parser of uvicorn."""
        self._body_left = 0  # of a request to upgrade, and of CONNECT, no body is read, whatever length it says
        self.scope[BODY_COMPLETE] = True  # type: ignore[literal-required]
        super().on_message_complete()

    def shutdown(self) -> None:
        """Called by a server that stops: the connection ends after its next answer, or when it has been idle for a
        moment.

        A client takes an idle connection for open until it hears otherwise. Were it closed at once, its next request
        would be lost.
        """
        if self._answering:
            super().shutdown()
        else:
            self.loop.call_later(LINGER_SECONDS, self._close_if_idle)

    def pause_writing(self) -> None:
        """Called by the transport when its buffer is full."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Called by the transport when its buffer has room again."""
        self._cancel_write_timer()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Called when the last part of an answer was given to the transport."""
        super().on_response_complete()
        self._time_out_closing()
        if self._refusal is not None:
            self._refuse(self._refusal)
        elif self._unparsed:
            # the parser may be at work now: this is called in the midst of it where a request is refused at once
            self.loop.call_soon(self._parse_waiting)

    def timeout_keep_alive_handler(self) -> None:
        """Called when no other request has come in time."""
        super().timeout_keep_alive_handler()
        self._time_out_closing()

    def _close_if_idle(self) -> None:
        if not self._answering and not self.transport.is_closing():
            self.transport.close()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_bytes = 0
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._time_out_head)

    def _time_out_head(self) -> None:
        """Give up a head, unless it waits for the answers to requests before it: then it has not been read."""
        self._head_timer = None
        if self._answering:
            self._start_head_timer()
        else:
            self._refuse(b"408 Request Timeout")

    @property
    def _answering(self) -> bool:
        """Whether a request is not answered yet."""
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out_closing(self) -> None:
        """Start the write timer if the transport is closing: it would wait for ever for a client that does not read."""
        if self.transport.is_closing():
            self._start_write_timer()

    def _start_write_timer(self) -> None:
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_SECONDS, self._abort)

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _abort(self) -> None:
        _log.warning("a client does not read its answer", bytes=self.transport.get_write_buffer_size())
        self.transport.abort()

    def _refuse(self, status: bytes) -> None:
        """Answer without a route, since there is no complete request yet; after the answers to the requests before."""
        self._cancel_head_timer()
        if self._answering:
            self._refusal = status
            return
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
            self._time_out_closing()
