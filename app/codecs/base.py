"""What every wire format offers, and the bounds that all of them keep."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, Protocol

from core import errors
from workers import contract
from workers.repositories.datasets import Batch

BLOCK_BYTES = 256 << 10
"""How much is parsed at once: few enough bytes that a parse in a thread never keeps the event loop from the interpreter for long."""

MAX_FAULTS = errors.MAX_FAULTS
"""How many faults an answer names at most."""

MAX_TEXT = contract.MAX_TEXT
"""Longest id or label, in characters."""

Spool = Callable[[], IO[bytes] | None]
"""Where a format that cannot be read as it comes may keep bytes until its end: a new file, or None for memory."""


@dataclass(frozen=True)
class Bounds:
    """How much of a body is accepted; going beyond raises workers.errors.LimitExceeded."""

    body_bytes: int
    """as sent"""
    unpacked_bytes: int
    """after gzip or zip"""
    document_bytes: int
    """of one document, as text"""
    documents: int
    nonzeros: int


class Decoder(Protocol):
    """A push parser: whoever reads the network feeds it, and the batches come out as soon as they are complete.

    Both methods raise InvalidDocuments (naming document and field) or LimitExceeded; iterate to the end.
    """

    def feed(self, data: bytes) -> Iterator[Batch]:
        """Take the next bytes of the body, at most BLOCK_BYTES for flat memory."""
        ...

    def finish(self) -> Iterator[Batch]:
        """The body has ended: the last batches, or the refusal of a body cut short."""
        ...


class Format(NamedTuple):
    """A wire format of documents. ``app.codecs.dispatch`` lists those that the gateway reads."""

    media_type: str
    """Content-Type without parameters, in lower case"""
    decoder: Callable[[Bounds, Spool], Decoder]
    """maker of a decoder for one body"""
    openapi: Mapping[str, Any]
    """the media type object of the contract: schema, examples"""
    compressed: bool = False
    """whether a body may be a thousand times as large as it was sent, whatever its Content-Encoding"""
