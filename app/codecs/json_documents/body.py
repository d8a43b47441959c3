"""``application/json``: ``{"documents": [...]}``, parsed as a stream."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from app.codecs.base import MAX_FAULTS, Decoder, Format, Reading
from app.codecs.faults import document_too_long, invalid_documents, refuse
from app.codecs.json.text import InvalidJson, JsonText
from app.codecs.json_documents.batches import BatchBuilder
from app.codecs.json_documents.document import Document, DocumentDecoder
from app.codecs.transport.encodings import Filtered, WithoutByteOrderMark
from core.errors import Fault, InvalidDocuments
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch

# The end of a document is found by counting braces outside strings. msgspec parses it.
_PLAIN = re.compile(rb'(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_HEAD = re.compile(rb'\s*\{\s*"documents"\s*:\s*\[')
_CLOSING = re.compile(rb"\}\s*\]\s*\}\s*\Z")
_CLOSING_BYTES = 64
_MOST_OBJECTS = 1100
"""features, vectors, votes of many voters, and what extra fields hold: braces are counted one by one"""
_SPACE = re.compile(rb"\s*")
_HEAD_BYTES = 1024
_SHAPE = 'the body must be {"documents": [...]} and nothing else; one document a line is application/x-ndjson'


class JsonDecoder(Decoder):
    """A state machine of six states. Each state is a method that parses some text and returns its end, or None if it
    needs more.

    Time is linear in the text, for any text and any cuts: scanning of a document resumes where the last block ended.
    """

    def __init__(self, reading: Reading) -> None:
        self._longest = reading.bounds.document_bytes
        self._decoder = DocumentDecoder(reading)
        self._builder = BatchBuilder()
        self._rest = bytearray()
        self._spans: list[tuple[int, int]] = []
        self._scanner = DocumentScanner()
        self._state: Callable[[JsonText, int], int | None] = self._head

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        # a rest that is longer than the new text is not parsed again, so that time stays linear
        tried = len(self._rest) > len(data)
        text: JsonText = data
        if self._rest:
            self._rest += data
            text = self._rest
        at: int | None = 0
        done = 0
        while at is not None:
            done = at
            if self._state == self._document and not tried:
                tried = True
                documents, done = self._parse_together(text, done)
                if documents:
                    yield self._builder.batch(documents)
            at = self._state(text, done)
        if self._spans:
            batch = self._builder.batch(self._documents(text))
            self._spans = []
            yield batch
        done = _end_of_space(text, done)
        if text is self._rest:
            del self._rest[:done]
        else:
            self._rest = bytearray(text[done:])
        if len(self._rest) > self._longest:
            raise self._too_long(self._rest)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._state == self._head:
            raise _wrong_shape(self._rest)
        if self._state != self._end:
            raise self._malformed("the text ends too early")
        return iter(())

    def _head(self, text: JsonText, at: int) -> int | None:
        found = _HEAD.match(text, at)
        if found:
            self._state = self._first
            return found.end()
        if len(text) > _HEAD_BYTES:
            raise _wrong_shape(text)
        return None

    def _first(self, text: JsonText, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        self._state = self._tail if text.startswith(b"]", at) else self._document
        return at + (self._state == self._tail)

    def _document(self, text: JsonText, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        end = self._scanner.end_of_document(text, at)
        if end:
            if end - at > self._longest:
                raise self._too_long(text[at:end])
            self._spans.append((at, end))
            self._state = self._between
            return end
        if end is None:
            raise self._wrong(text[at:])
        return None

    def _between(self, text: JsonText, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        if text[at] not in b",]":
            raise self._malformed("a comma or ] must follow a document")
        self._state = self._document if text[at] in b"," else self._tail
        return at + 1

    def _tail(self, text: JsonText, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        if text[at] not in b"}":
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        self._state = self._end
        return at + 1

    def _end(self, text: JsonText, at: int) -> int | None:
        if _end_of_space(text, at) < len(text):
            raise InvalidDocuments(_SHAPE, [Fault("", "", "there is text after the end of the JSON value")])
        return len(text) if at < len(text) else None

    def _parse_together(self, text: JsonText, at: int) -> tuple[list[Document], int]:
        """All complete documents from a position on, and their end; no documents if they cannot be parsed together.

        Parsing many documents at once takes a third less time than finding their ends one by one. Documents are found
        one by one where one may be wrong or too long.
        """
        closing = _CLOSING.search(text, max(at, len(text) - _CLOSING_BYTES))
        end = closing.start() + 1 if closing else text.rfind(b"}", at) + 1
        try:
            documents = self._decoder.array(b"[" + text[at:end] + b"]") if 0 < end <= at + self._longest else []
        except InvalidJson:
            documents = []
        if not documents:
            return [], at
        self._state = self._between
        self._scanner = DocumentScanner()
        return documents, end

    def _documents(self, text: JsonText) -> list[Document]:
        """The documents of the spans: all at once, or one by one where one may be wrong."""
        with suppress(InvalidJson):
            return self._decoder.array(b"[" + text[self._spans[0][0] : self._spans[-1][1]] + b"]")
        documents: list[Document] = []
        faults: list[Fault] = []
        for position, (start, stop) in enumerate(self._spans, self._builder.position):
            try:
                documents.append(self._decoder.one(text[start:stop]))
            except InvalidJson as error:
                faults.append(self._decoder.fault(error, text[start:stop], position))
                if len(faults) == MAX_FAULTS:
                    break
        refuse(faults)
        return documents

    def _wrong(self, text: JsonText) -> InvalidDocuments:
        """The error of a document without an end: it has too many objects, or is none."""
        position = self._builder.position + len(self._spans)
        if text.startswith(b"{"):
            deep = "write what goes deeper as one text, or send application/x-ndjson"
            return invalid_documents([Fault(str(position), "", f"has more than {_MOST_OBJECTS} objects; {deep}")])
        try:
            self._decoder.one(text)
        except InvalidJson as error:
            return invalid_documents([self._decoder.fault(error, text, position)])
        return self._malformed("malformed JSON")

    def _malformed(self, detail: str) -> InvalidDocuments:
        position = self._builder.position + len(self._spans)
        return invalid_documents([Fault(str(position), "", f"malformed JSON: {detail}")])

    def _too_long(self, text: JsonText) -> LimitExceeded:
        return document_too_long(text, f"number {self._builder.position + len(self._spans) + 1}", self._longest)


def _wrong_shape(text: JsonText) -> InvalidDocuments:
    """The error of a body that does not begin as it must, with advice."""
    given = bytes(text[:_HEAD_BYTES]).strip()
    advice = ""
    if given.startswith(b"["):
        advice = '; this is an array: put it in, as in {"documents": [...]}'
    elif given.startswith((b'{"text"', b'{"id"', b'{"label"', b'{"features"', b'{"indices"')):
        advice = '; this is a document: put it in, as in {"documents": [{...}]}'
    return InvalidDocuments(_SHAPE + advice, [Fault("", "documents", _SHAPE + advice)])


class DocumentScanner:
    """Finds the end of a document that comes in several blocks; it resumes where the last block ended."""

    def __init__(self) -> None:
        self._seen = 0
        self._depth = self._objects = 0
        self._in_string = False

    def end_of_document(self, text: JsonText, at: int) -> int | None:
        """End of the document that starts at ``at``; 0 if more text is needed, None if it is no document.

        After 0 the next call continues the same document.
        """
        if not self._seen:
            end = _end_of_plain_document(text, at)
            if end:
                return end
            if not text.startswith(b"{", at):
                return None
            self._seen, self._depth, self._objects = 1, 1, 0
        offset = at + self._seen
        while self._depth and self._objects <= _MOST_OBJECTS:
            offset = self._next_brace(text, offset)
            if offset == len(text) or self._in_string:
                self._seen = offset - at
                return 0
            opens = text.startswith(b"{", offset)
            self._depth += 1 if opens else -1
            self._objects += opens
            offset += 1
        self._seen = 0
        return None if self._depth else offset

    def _next_brace(self, text: JsonText, offset: int) -> int:
        """Position of the next brace outside strings, or of the end of the text; an escape that is cut waits for its
        other half.
        """
        if self._in_string:
            offset = _end(_STRING, text, offset)
            if not text.startswith(b'"', offset):
                return offset
            self._in_string = False
            offset += 1
        offset = _end(_PLAIN, text, offset)
        if text.startswith(b'"', offset):
            self._in_string = True
            offset = _end(_STRING, text, offset + 1)
        return offset


def _end(pattern: re.Pattern[bytes], text: JsonText, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _end_of_space(text: JsonText, at: int) -> int:
    return _end(_SPACE, text, at)


def _end_of_plain_document(text: JsonText, at: int) -> int:
    """End of the document that starts here if none of its strings has a brace or an escape, as in most documents; else
    0.
    """
    end = text.find(b"}", at) + 1
    plain = end and text.startswith(b"{", at) and text.find(b"{", at + 1, end) < 0 and text.find(b"\\", at, end) < 0
    return end if plain and text.count(b'"', at, end) % 2 == 0 else 0


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
    lambda reading: Filtered(WithoutByteOrderMark(), JsonDecoder(reading)),
    {
        "schema": {"$ref": "#/components/schemas/Documents"},
        "examples": {kind: {"value": {"documents": documents}} for kind, documents in _EXAMPLES.items()},
    },
    has_columns=True,
    endings=("json",),
)
