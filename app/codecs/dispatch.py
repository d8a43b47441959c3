"""The formats of documents by media type, and the decoder that a request's headers name."""

from collections.abc import Iterator, Mapping

from app.codecs import json_body, ndjson, npz, svmlight
from app.codecs.base import BLOCK_BYTES, Bounds, Decoder, Spool
from app.codecs.content_encoding import Gunzip, Held, Identity, Unpacker, free
from app.errors import UnsupportedMediaType
from workers.errors import LimitExceeded
from workers.repositories.datasets import Batch

FORMATS = {each.media_type: each for each in (json_body.FORMAT, ndjson.FORMAT, svmlight.FORMAT, npz.FORMAT)}
"""What the gateway reads documents in, by media type."""


class Body:
    """A request body on its way to batches: counts its bytes, undoes its encoding, decodes its format."""

    def __init__(self, unpacker: Unpacker, decoder: Decoder, bounds: Bounds) -> None:
        self._unpacker = unpacker
        self._decoder = decoder
        self._bounds = bounds
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Batch]:
        """Batches that these bytes complete; raises InvalidDocuments or LimitExceeded."""
        self._size += len(data)
        check_size(self._size, self._bounds)
        for piece in self._unpacker.feed(data):
            yield from self._decoder.feed(piece)

    def finish(self) -> Iterator[Batch]:
        """The last batches; raises InvalidDocuments for a body cut short."""
        self._unpacker.finish()
        return self._decoder.finish()


def body_of(headers: Mapping[str, str], bounds: Bounds, spool: Spool = lambda: None, held: Held = free) -> Body:
    """The decoder of a request; ``held`` counts what is unpacked, where that is not read as a stream.

    Raises UnsupportedMediaType, or LimitExceeded where the headers announce too much already.
    """
    media_type = media_type_of(headers)
    if media_type not in FORMATS:
        raise UnsupportedMediaType(f"a body of type {media_type or '(none)'}", f"documents come as {', '.join(FORMATS)}")
    unpacker = unpacker_of(headers, bounds, held)
    length = headers.get("content-length", "")
    if length.isdecimal():
        check_size(int(length), bounds)
    return Body(unpacker, FORMATS[media_type].decoder(bounds, spool), bounds)


def media_type_of(headers: Mapping[str, str]) -> str:
    """What the Content-Type names, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_packed(headers: Mapping[str, str]) -> bool:
    """Whether the body may be a thousand times as large as it was sent."""
    format = FORMATS.get(media_type_of(headers))
    return "content-encoding" in headers or (format is not None and format.compressed)


def check_size(size: int, bounds: Bounds) -> None:
    """Raises LimitExceeded for a body of more bytes than are taken."""
    if size > bounds.body_bytes:
        raise LimitExceeded("bytes in the body", bounds.body_bytes)


def pieces(data: bytes) -> Iterator[bytes]:
    """The bytes, in pieces that may be fed."""
    return (data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))


def unpacker_of(headers: Mapping[str, str], bounds: Bounds, held: Held = free) -> Unpacker:
    """What undoes the Content-Encoding; raises UnsupportedMediaType, and as it works whatever ``held`` raises."""
    match headers.get("content-encoding", "identity").strip().lower():
        case "identity" | "":
            return Identity()
        case "gzip" | "x-gzip":
            return Gunzip(bounds.unpacked_bytes, held)
        case other:
            raise UnsupportedMediaType(f"Content-Encoding {other[:64]!r}", "bodies come plain or as gzip")
