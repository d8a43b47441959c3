"""The protocol of decoders, the description of a format, and the bounds of a body."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Literal, NamedTuple, get_args

from app.errors import InvalidRequest
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch

BLOCK_BYTES = 256 << 10
"""Bytes that are parsed at a time: few enough that a parse in a thread does not hold the interpreter lock for long."""

LARGEST_WHOLE = 2**53
"""largest number up to which floats hold all integers"""

SEPARATOR = ";"
MAX_SEPARATOR = 8
"""Characters of what stands between several labels at most."""

EXTRA_REMEDY = (
    "?extra=keep keeps what is unknown beside the documents, ?extra=ignore leaves it out; on the command line it is "
    "--extra keep"
)

VECTOR_NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")
"""What one of several vectors of a document may be called."""

Spool = Callable[[], IO[bytes] | None]
"""Opens a file for a format that needs the whole body before it can be read; returns None where the body is kept in
memory."""

Reserve = Callable[[int], None]
"""Reserves bytes of memory; may raise TooManyRequests."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of a body; beyond them decoders raise ``storage.errors.LimitExceeded``."""

    body_bytes: int
    """Bytes as sent."""
    decompressed_bytes: int
    """Bytes after gzip or zip."""
    document_bytes: int
    """Bytes of one document, as text."""
    documents: int
    nonzeros: int


Column = Literal["text", "label", "id", "labels", "not", "weight"]
"""What a column of a table may hold: one label, or several in ``labels``, and in ``not`` those that do not apply."""
COLUMNS: tuple[Column, ...] = get_args(Column)


Extra = Literal["keep", "ignore", "refuse"]
"""What becomes of columns and fields that Halfmoon does not know: they are kept beside the documents, left out, or
refused."""


@dataclass(frozen=True)
class Reading:
    """Directions for reading a body: its bounds, and the parameters of the request about it."""

    bounds: Bounds
    spool: Spool = lambda: None
    reserve: Reserve = lambda size: None
    """Reserves the memory of what a decoder holds of the body beside the blocks that it is fed, where the body is not
    read as a stream."""
    columns: Mapping[Column, str] = field(default_factory=dict)
    """Names of the columns of a table, or fields of JSON, that hold these, where the request gives them."""
    separator: str | None = None
    """Text between several labels in a cell of a table, where the request gives it."""
    extra: Extra | None = None
    """What becomes of extra columns and fields; None: those of tables are kept, others refused."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of Content-Type, their names in lower case."""
    formats: "Mapping[str, Format]" = field(default_factory=dict)
    """The formats by every name, for a body that has another one inside."""


class Decoder(ABC):
    """A push parser: it is fed blocks of a body and yields the batches of documents that they complete.

    The iterators must be read to their end. They raise InvalidDocuments, which names document and field, and
    LimitExceeded. A batch without documents says that a part of the work is done, so that the caller may look whether
    the client is still there.
    """

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[Batch]:
        """The batches that the next bytes of the body complete. Memory stays flat for blocks of at most BLOCK_BYTES."""

    @abstractmethod
    def finish(self) -> Iterator[Batch]:
        """The last batches, after the end of the body; raises InvalidDocuments if the body is cut short."""

    def read(self, blocks: Iterable[bytes]) -> Iterator[Batch]:
        """The batches of a whole body, given in blocks as to ``feed``."""
        for block in blocks:
            yield from self.feed(block)
        yield from self.finish()

    def warnings(self) -> Sequence[str]:
        """Notes for the sender of a body that was read to its end, such as columns that were not used."""
        return ()


class Format(NamedTuple):
    """A format of documents. ``app.codecs.dispatch`` lists those that the gateway reads."""

    media_type: str
    """Content-Type without parameters, in lower case."""
    decoder: Callable[[Reading], Decoder]
    """Factory of a decoder for one body."""
    openapi: Mapping[str, Any]
    """Media type object of the contract: schema and examples."""
    compressed: bool = False
    """Whether the format itself is compressed, so that a body may grow a thousandfold."""
    aliases: tuple[str, ...] = ()
    """Other media types of the same format."""
    endings: tuple[str, ...] = ()
    """Endings of the names of its files, without the point."""
    has_columns: bool = False
    """Whether text, label, id and so on have names in it, which a request may give."""

    def open(self, reading: Reading) -> Decoder:
        """A decoder for one body; raises InvalidRequest if the request says something of columns, and the format has
        none.
        """
        if (reading.columns or reading.separator is not None) and not self.has_columns:
            raise InvalidRequest(
                next(iter(reading.columns), "separator"),
                f"is for columns of a table or fields of JSON; {self.media_type} has neither",
            )
        return self.decoder(reading)


def endings_of(formats: Iterable[Format]) -> dict[str, str]:
    """The media types of files by the ending of their names."""
    return {ending: format.media_type for format in formats for ending in format.endings}


def in_blocks(data: bytes) -> Iterator[bytes]:
    """The bytes in blocks for a decoder."""
    return (data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))


def check_limit(size: int, what: str, most: int, remedy: str = "") -> None:
    """Raises LimitExceeded for a size of more than ``most``."""
    if size > most:
        raise LimitExceeded(what, most, remedy)
