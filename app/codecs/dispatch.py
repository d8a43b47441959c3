"""Which decoder a request's headers ask for."""

from collections.abc import Callable, Iterator, Mapping

from app.codecs.base import BLOCK_BYTES, Bounds, Decoder, Spool
from app.codecs.encoding import Gunzip, Held, Identity, Unpacker, free
from app.codecs.json_body import JsonDecoder
from app.codecs.mark import Unmarked
from app.codecs.ndjson import NdjsonDecoder
from app.codecs.npz import NpzDecoder
from app.codecs.svmlight import SvmlightDecoder
from app.errors import UnsupportedMediaType
from workers.errors import LimitExceeded
from workers.repositories.datasets import Batch

_NPZ = "application/x-npz"
_DECODERS: Mapping[str, Callable[[Bounds, Spool], Decoder]] = {
    "application/json": lambda bounds, spool: Unmarked(JsonDecoder(bounds.document_bytes)),
    "application/x-ndjson": lambda bounds, spool: Unmarked(NdjsonDecoder(bounds.document_bytes)),
    "text/x-svmlight": lambda bounds, spool: Unmarked(SvmlightDecoder(bounds.document_bytes)),
    _NPZ: lambda bounds, spool: NpzDecoder(spool, bounds),
}
MEDIA_TYPES = tuple(_DECODERS)


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
    decoder = _DECODERS.get(media_type)
    if decoder is None:
        raise UnsupportedMediaType(f"a body of type {media_type or '(none)'}", f"documents come as {', '.join(MEDIA_TYPES)}")
    unpacker = unpacker_of(headers, bounds, held)
    length = headers.get("content-length", "")
    if length.isdecimal():
        check_size(int(length), bounds)
    return Body(unpacker, decoder(bounds, spool), bounds)


def media_type_of(headers: Mapping[str, str]) -> str:
    """What the Content-Type names, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_packed(headers: Mapping[str, str]) -> bool:
    """Whether the body may be a thousand times as large as it was sent."""
    return "content-encoding" in headers or media_type_of(headers) == _NPZ


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
