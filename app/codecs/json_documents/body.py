"""``application/json``: ``{"documents": [...]}``, or the array alone, parsed as a stream."""

import re
from collections.abc import Iterator
from enum import Enum, auto

import numpy as np

from app.codecs.base import Decoder, Format, Reading
from app.codecs.json.struct import Scan
from app.codecs.json.text import BYTE_ORDER_MARK, InvalidJson, JsonText, document_too_long
from app.codecs.json_documents.batches import BatchBuilder
from app.codecs.json_documents.document import Document, DocumentDecoder
from app.codecs.transport.encodings import without_byte_order_mark
from core.errors import MAX_FAULTS, Fault, InvalidDocuments, invalid_documents, refuse, refused
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch

_HEAD = re.compile(rb'(?:%s)?\s*(?:(\{)\s*"documents"\s*:\s*)?\[' % BYTE_ORDER_MARK)
_HEAD_BYTES = 1024
_CLOSING = re.compile(rb"\}\s*\]\s*\}?\s*\Z")
_SPACE = re.compile(rb"\s*")
_END = ord("]")
_SHAPE = (
    'documents in JSON are {"documents": [...]} or [...] and nothing else; one a line is application/x-ndjson, a file '
    ".ndjson"
)


class _Place(Enum):
    """The place of the text that was not read yet."""

    HEAD = auto()
    DOCUMENT = auto()
    """before a document, or in it"""
    BETWEEN = auto()
    """after a document, before the comma or the end of the array"""
    TAIL = auto()
    """after the array"""


class JsonDecoder(Decoder):
    """Reads documents together where what came ends with a document, else up to the last comma between documents.

    Time is linear in the text, for any text and any cuts: the scan for commas resumes where the last block ended.
    """

    def __init__(self, reading: Reading) -> None:
        self._longest = reading.bounds.document_bytes
        self._decoder = DocumentDecoder(reading)
        self._builder = BatchBuilder()
        self._place = _Place.HEAD
        self._tail = b"}"
        self._rest = bytearray()
        # square brackets that do not match spoil no document but their own
        self._scan, self._scanned = Scan(b"{", b"}"), 0

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        # a rest that is longer than the new text is not parsed again, so that time stays linear
        few = len(self._rest) > len(data)
        self._rest += data
        self._pass_to_document()
        if self._place == _Place.DOCUMENT and not few and (documents := self._parsed_together()):
            yield self._builder.batch(documents)
            self._pass_to_document()
        if self._place == _Place.DOCUMENT and (pieces := self._cut()):
            yield self._builder.batch(self._documents(pieces))
        self._drop(_end_of_space(self._rest))
        if self._place == _Place.TAIL:
            if self._rest and not self._rest.startswith(self._tail):
                raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
            if _end_of_space(self._rest, len(self._tail)) < len(self._rest):
                raise InvalidDocuments(_SHAPE, [Fault("", "", "there is text after the end of the JSON value")])
            del self._rest[len(self._tail) :]
        if len(self._rest) > self._longest:
            raise self._too_long(self._rest, 0)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._place == _Place.HEAD:
            raise _wrong_shape(self._rest)
        if self._place == _Place.DOCUMENT and self._rest:
            self._documents([bytes(self._rest)])  # says what is wrong with it, if more is than that it does not end
        if self._place != _Place.TAIL or self._rest != self._tail:
            raise self._malformed("the text ends too early")
        return iter(())

    def _drop(self, count: int) -> None:
        """Forget the beginning of the rest, which has been read."""
        del self._rest[:count]
        self._scanned = max(0, self._scanned - count)

    def _pass_to_document(self) -> None:
        """Pass what stands before a document: the head of the body, or what follows the document before."""
        if self._place == _Place.HEAD:
            found = _HEAD.match(self._rest)
            if found:
                self._tail = b"}" if found[1] else b""
                self._drop(found.end())
                self._place = _Place.DOCUMENT
            elif len(self._rest) > _HEAD_BYTES:
                raise _wrong_shape(self._rest)
        at = _end_of_space(self._rest)
        if self._place == _Place.BETWEEN and at < len(self._rest):
            if self._rest[at] not in b",]":
                raise self._malformed("a comma or ] must follow a document")
            self._place = _Place.TAIL if self._rest[at] == _END else _Place.DOCUMENT
            self._drop(at + 1)

    def _parsed_together(self) -> list[Document]:
        """All complete documents; none if they cannot be parsed together, as where one may be wrong or too long.

        Parsing many documents at once takes a third less time than finding their ends.
        """
        text = self._rest
        closing = _CLOSING.search(text, max(0, len(text) - 64))
        end = closing.start() + 1 if closing else text.rfind(b"}") + 1
        documents = self._decoder.array(b"[" + text[:end] + b"]") if 0 < end <= self._longest else []
        if documents:
            self._drop(end)
            self._scan, self._scanned, self._place = Scan(b"{", b"}"), 0, _Place.BETWEEN
        return documents

    def _cut(self) -> list[bytes]:
        """The texts of all complete documents."""
        block = np.frombuffer(self._rest[self._scanned :], np.uint8)
        if not len(block):
            return []
        outside, depth = self._scan.read(block)
        ends = np.flatnonzero(outside & (depth == 0) & ((block == ord(",")) | (block == _END)))
        closing = np.flatnonzero(block[ends] == _END)
        if len(closing):
            self._place = _Place.TAIL
            ends = ends[: closing[0] + 1]
        pieces, start = [], 0
        for end in (ends + self._scanned).tolist():
            pieces.append(bytes(self._rest[start:end].strip()))
            start = end + 1
        self._scanned = len(self._rest)
        self._drop(start)
        empty = pieces == [b""] and len(closing) and not self._builder.position
        return [] if empty else pieces

    def _documents(self, pieces: list[bytes]) -> list[Document]:
        """The documents of these texts: all at once, or one by one where one may be wrong."""
        for number, piece in enumerate(pieces):
            if len(piece) > self._longest:
                raise self._too_long(piece, number)
        documents = self._decoder.array(b"[" + b",".join(pieces) + b"]")
        if len(documents) == len(pieces):
            return documents
        documents = []
        faults: list[Fault] = []
        for number, piece in enumerate(pieces):
            try:
                documents.append(self._decoder.one(piece))
            except InvalidJson as error:
                if "something follows its end" in error.detail:
                    raise self._malformed("a comma or ] must follow a document", number + 1) from None
                faults.append(self._decoder.fault(error, piece, self._builder.position + number))
                if len(faults) == MAX_FAULTS:
                    break
        refuse(faults)
        return documents

    def _malformed(self, detail: str, number: int = 0) -> InvalidDocuments:
        """The error of the document of this number among those that come next."""
        return invalid_documents([Fault(self._builder.position + number, "", f"malformed JSON: {detail}")])

    def _too_long(self, text: JsonText, number: int) -> LimitExceeded:
        return document_too_long(text, f"number {self._builder.position + number + 1}", self._longest)


def _wrong_shape(text: JsonText) -> InvalidDocuments:
    """The error of a body that does not begin as it must, with advice."""
    try:
        given = bytes(without_byte_order_mark(memoryview(text[:_HEAD_BYTES]))).strip()
    except InvalidJson as error:
        return refused(error.detail)
    advice = ""
    if given.startswith((b'{"text"', b'{"id"', b'{"label"', b'{"features"', b'{"indices"')):
        advice = '; this is a document: put it in, as in {"documents": [{...}]}'
    return InvalidDocuments(_SHAPE + advice, [Fault("", "documents", _SHAPE + advice)])


def _end_of_space(text: JsonText, at: int = 0) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


_EXAMPLES = {
    "text": [{"id": "d1", "text": "The goalkeeper saved the penalty.", "label": "sport"}],
    "named features": [{"id": "d1", "features": {"goalkeeper": 0.2, "penalty": 0.9}, "label": "sport"}],
    "vectors": [{"id": "d1", "indices": [3, 17], "values": [0.2, 0.9], "label": "sport"}],
    "dense vectors": [{"id": "d1", "vector": [0.12, -0.5, 0.31], "label": "sport"}],
    "text and its vector": [
        {"id": "d1", "text": "The goalkeeper saved the penalty.", "vector": [0.12, -0.5, 0.31], "label": "sport"}
    ],
}
FORMAT = Format(
    "application/json",
    JsonDecoder,
    {
        "schema": {"$ref": "#/components/schemas/Documents"},
        "examples": {kind: {"value": {"documents": documents}} for kind, documents in _EXAMPLES.items()},
    },
    has_columns=True,
    endings=("json",),
)
