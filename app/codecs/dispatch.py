"""The formats of documents by media type, and the decoder for the headers of a request."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import get_args

import msgspec

from app.codecs import archives
from app.codecs.arrays import npz
from app.codecs.base import (
    BLOCK_BYTES,
    COLUMNS,
    MAX_SEPARATOR,
    Bounds,
    Decoder,
    Extra,
    Reading,
    Reserve,
    Spool,
    check_limit,
    endings_of,
)
from app.codecs.json_documents import body, ndjson
from app.codecs.tables import child, csv, svmlight, workbook
from app.codecs.transport import multipart
from app.codecs.transport.encodings import Filter, Filtered, Gunzip, reserve_nothing
from app.errors import InvalidRequest, UnsupportedMediaType
from core.errors import did_you_mean

_READ = (
    *(body.FORMAT, ndjson.FORMAT, csv.CSV, csv.TSV, workbook.FORMAT, child.PARQUET, child.ARROW, svmlight.FORMAT),
    *(npz.FORMAT, npz.NPY, archives.ZIP, archives.TAR, archives.GZIPPED, multipart.FORMAT),
)
FORMATS = {each.media_type: each for each in _READ}
"""Formats that the gateway reads, by media type."""
ENDINGS = endings_of(_READ)
"""Media types of files by the ending of their names, for forms, the page and ``halfmoon doctor``."""
_BY_ANY_NAME = FORMATS | {alias: format for format in FORMATS.values() for alias in format.aliases}

_UNNAMED = "say what it is, as by -H 'Content-Type: text/csv'; "
_ADVICE = {
    "x-www-form-urlencoded": "that is what curl -d says by itself: add -H 'Content-Type: application/json', and send "
    "lines by --data-binary; ",
    "spreadsheet": "save the table as .xlsx or CSV; ",
    "ms-excel": "save the table as .xlsx or CSV; ",
    "octet-stream": "say what it really is, as by -H 'Content-Type: application/x-npz'; ",
    "text/plain": "a document a line as JSON is application/x-ndjson, a table text/csv; ",
    "xml": "write a document a line as JSON (application/x-ndjson); ",
}
"""What to do instead, by a part of the media type."""


def body_decoder(
    headers: Mapping[str, str],
    bounds: Bounds,
    spool: Spool = lambda: None,
    reserve: Reserve = reserve_nothing,
    query: Mapping[str, str] = MappingProxyType({}),
) -> Decoder:
    """The decoder for a request with these headers and query parameters, which decompresses its bytes; whoever feeds it
    has counted them (``check_size``).

    ``reserve`` reserves memory for what is decompressed, where the body is not read as a stream.

    Raises UnsupportedMediaType.
    """
    media_type, parameters = _content_type(headers.get("content-type", ""))
    if media_type not in _BY_ANY_NAME:
        raise UnsupportedMediaType(
            f"a body of type {media_type[:64] or '(none)'}",
            f"{_advice(media_type)}documents come as {', '.join(FORMATS)}",
        )
    reading = Reading(bounds, spool, reserve, parameters=parameters, formats=_BY_ANY_NAME)
    decoder = _BY_ANY_NAME[media_type].open(_as_asked(reading, query) if query else reading)
    if "content-encoding" in headers:
        decoder = Filtered(decompressor_of(headers, bounds, reserve), decoder)
    return decoder


def _as_asked(reading: Reading, query: Mapping[str, str]) -> Reading:
    """The directions with those of the query; raises InvalidRequest."""
    given = query.get("extra")
    extra = next((word for word in get_args(Extra) if word == given), None)
    if given is not None and extra is None:
        raise InvalidRequest(
            "extra",
            f"{given[:64]!r} is none of {', '.join(get_args(Extra))}{did_you_mean(given[:64], get_args(Extra))}",
        )
    separator = query.get("separator")
    if separator is not None and not 1 <= len(separator) <= MAX_SEPARATOR:
        raise InvalidRequest("separator", f"must have 1 to {MAX_SEPARATOR} characters")
    columns = {column: query[column] for column in COLUMNS if column in query}
    return replace(reading, columns=columns, separator=separator, extra=extra)


def _advice(media_type: str) -> str:
    """Advice for an unknown media type, which may be a known one under another name, as text/json is."""
    name = media_type.rpartition("/")[2].removeprefix("x-")
    meant = next((each for each in _BY_ANY_NAME if each.rpartition("/")[2].removeprefix("x-") == name), "")
    if not media_type or meant:
        return f"did you mean {meant}? " if meant else _UNNAMED
    return next((advice for part, advice in _ADVICE.items() if part in media_type), "")


def media_type_of(headers: Mapping[str, str]) -> str:
    """The media type of Content-Type, without parameters."""
    return _content_type(headers.get("content-type", ""))[0]


@lru_cache(64)  # clients send the same again and again
def _content_type(text: str) -> tuple[str, Mapping[str, str]]:
    """A Content-Type as media type and parameters, both in lower case."""
    media_type, *parts = text.split(";")
    pairs = (part.partition("=") for part in parts)
    parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    return media_type.strip().lower(), MappingProxyType(parameters)


def check_unread(query: Mapping[str, str], why: str) -> None:
    """Raises InvalidRequest for a parameter that says how documents are read, where none are: ``why``."""
    given = next((name for name in (*COLUMNS, "separator", "extra") if name in query), None)
    if given:
        raise InvalidRequest(given, f"is for documents in the body: {why}")


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether the body is compressed, so that it may grow a thousandfold."""
    format = _BY_ANY_NAME.get(media_type_of(headers))
    return "content-encoding" in headers or (format is not None and format.compressed)


def check_length(headers: Mapping[str, str], bounds: Bounds) -> None:
    """Raises LimitExceeded where Content-Length is too large."""
    length = headers.get("content-length", "")
    check_size(int(length) if length.isdecimal() else 0, bounds)


def check_size(size: int, bounds: Bounds) -> None:
    """Raises LimitExceeded for a body that is too large."""
    check_limit(size, "bytes in the body", bounds.body_bytes)


def document_blocks(documents: msgspec.Raw) -> Iterator[bytes]:
    """The documents of a raw field as a body of documents, in blocks for a decoder."""
    text = memoryview(documents)
    yield b'{"documents":'
    yield from (bytes(text[at : at + BLOCK_BYTES]) for at in range(0, len(text), BLOCK_BYTES))
    yield b"}"


def decompressor_of(headers: Mapping[str, str], bounds: Bounds, reserve: Reserve = reserve_nothing) -> Filter:
    """The decompressor for a Content-Encoding; raises UnsupportedMediaType."""
    match headers.get("content-encoding", "identity").strip().lower():
        case "identity" | "":
            return Filter()
        case "gzip" | "x-gzip":
            return Gunzip(bounds.decompressed_bytes, reserve)
        case other:
            raise UnsupportedMediaType(f"Content-Encoding {other[:64]!r}", "a body comes uncompressed or as gzip")
