"""``multipart/form-data`` with one file, as forms of pages and ``curl -F file=@news.csv`` send it.

The file is of the media type of its part, or of that which the end of its name stands for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.codecs.base import Decoder, Format, Reading, endings_of
from app.errors import UnsupportedMediaType
from core.errors import HalfmoonError, refused
from storage.repositories.datasets import Batch

_LONGEST_HEADERS = 4096
_VAGUE = ("", "application/octet-stream", "text/plain", "application/vnd.ms-excel")
"""Media types that browsers give to files which they do not know, and Windows to CSV."""


class MultipartDecoder(Decoder):
    """Feeds the bytes of the file to the decoder of its format."""

    def __init__(self, reading: Reading) -> None:
        boundary = reading.parameters.get("boundary", "")
        if not boundary:
            raise UnsupportedMediaType(
                "multipart/form-data without a boundary", "let the client write the header: curl -F file=@news.csv"
            )
        self._reading = reading
        self._decoder: Decoder | None = None
        self._headers: dict[str, bytes] = {}
        self._name, self._value = bytearray(), bytearray()
        self._data: list[bytes] = []
        self._ended = False
        self._parser = MultipartParser(
            boundary.encode(),
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": partial(self._add, self._name),
                "on_header_value": partial(self._add, self._value),
                "on_header_end": self._end_header,
                "on_headers_finished": self._begin_part,
                "on_part_data": lambda data, start, end: self._data.append(data[start:end]),
                "on_end": self._end,
            },
        )

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        refusal: HalfmoonError | None = None
        try:
            self._parser.write(data)
        except FormParserError as error:
            refusal = refused(f"not multipart/form-data: {error}")
        except HalfmoonError as error:
            refusal = error
        # what comes before a refusal is read first, so that the answer does not depend on where the body was cut
        found, self._data = b"".join(self._data), []
        if found and self._decoder is not None:
            yield from self._decoder.feed(found)
        if refusal is not None:
            raise refusal

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._decoder is None or not self._ended:
            raise refused(
                "the form ends too early"
                if self._decoder
                else "the form has no file; send one, as curl -F file=@news.csv does"
            )
        return self._decoder.finish()

    def warnings(self) -> Sequence[str]:
        """See Decoder."""
        return self._decoder.warnings() if self._decoder else ()

    def _add(self, text: bytearray, data: bytes, start: int, end: int) -> None:
        """Add bytes to the name or the value of a header."""
        text += data[start:end]
        if len(self._name) + len(self._value) + sum(map(len, self._headers.values())) > _LONGEST_HEADERS:
            raise refused("the headers of a part are too long")

    def _end_header(self) -> None:
        self._headers[self._name.decode("latin-1").lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _begin_part(self) -> None:
        _, disposition = parse_options_header(self._headers.get("content-disposition", b""))
        if b"filename" not in disposition:
            name = disposition.get(b"name", b"").decode(errors="replace")[:40]
            raise refused(
                f"the form has the field {name!r} beside the file; what it says goes into the query, as in ?text=body"
            )
        if self._decoder is not None:
            raise refused("the form has a second file; send one a request")
        file = disposition[b"filename"].decode(errors="replace")
        media_type, options = parse_options_header(self._headers.get("content-type", b""))
        kind = media_type.decode("latin-1").lower()
        endings = endings_of(self._reading.formats.values())
        if kind in _VAGUE:
            kind = endings.get(file.rpartition(".")[2].lower(), kind)
        format = self._reading.formats.get(kind)
        if format is None or format is FORMAT:
            raise UnsupportedMediaType(
                f"the file {file[:64]!r} of type {kind[:64] or '(none)'}", f"files end with .{', .'.join(endings)}"
            )
        parameters = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in options.items()}
        self._decoder = format.open(replace(self._reading, parameters=parameters, formats={}))

    def _end(self) -> None:
        self._ended = True


FORMAT = Format(
    "multipart/form-data",
    MultipartDecoder,
    {
        "schema": {
            "type": "object",
            "required": ["file"],
            "properties": {
                "file": {
                    "type": "string",
                    "format": "binary",
                    "description": "A file of one of the other formats, by the type of its part or the end of its "
                    "name.",
                }
            },
        }
    },
    compressed=True,
    has_columns=True,
)
