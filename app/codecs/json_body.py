"""``application/json``: ``{"documents": [...]}``, read as it comes."""

import re
from collections.abc import Callable, Iterator

import msgspec

from app.codecs.base import MAX_FAULTS, Format
from app.codecs.byte_order_mark import Unmarked
from app.codecs.documents import BatchMaker, Document, fault_of, refusal, too_long
from app.codecs.json_text import WrongJson, decoded
from core.errors import Fault, InvalidDocuments
from workers.errors import LimitExceeded
from workers.repositories.datasets import Batch

Text = bytes | bytearray

# A valid document has at most one object inside, so counting braces outside strings finds where it ends; msgspec parses it.
_PLAIN = re.compile(rb'(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_HEAD = re.compile(rb'\s*\{\s*"documents"\s*:\s*\[')
_CLOSING = re.compile(rb"\}\s*\]\s*\}\s*\Z")
_CLOSING_BYTES = 64
_SPACE = re.compile(rb"\s*")
_HEAD_BYTES = 1024
_SHAPE = 'the body must be {"documents": [...]} and nothing else; a document a line is sent as application/x-ndjson'


class JsonDecoder:
    """A machine of six states, each a method: it moves on from a position, or returns None when more text must come first.

    The time it takes is linear in the text, however it is cut and whatever is in it: a document that comes in many pieces is gone on with
    where its last piece ended.
    """

    def __init__(self, document_bytes: int) -> None:
        self._longest = document_bytes
        self._decoder = msgspec.json.Decoder(list[Document])
        self._one = msgspec.json.Decoder(Document)
        self._maker = BatchMaker()
        self._rest = bytearray()
        self._spans: list[tuple[int, int]] = []
        self._unfinished = Unfinished()
        self._state: Callable[[Text, int], int | None] = self._head

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        # to look through the rest again costs no more than to look through the new text, if it is no longer
        tried = len(self._rest) > len(data)
        text: Text = data
        if self._rest:
            self._rest += data
            text = self._rest
        at: int | None = 0
        done = 0
        while at is not None:
            done = at
            if self._state == self._document and not tried:
                tried = True
                documents, done = self._at_once(text, done)
                if documents:
                    yield self._maker.batch(documents)
            at = self._state(text, done)
        if self._spans:
            batch = self._maker.batch(self._documents(text))
            self._spans = []
            yield batch
        self._keep(text, _end_of_space(text, done))

    def _keep(self, text: Text, done: int) -> None:
        if text is self._rest:
            del self._rest[:done]
        else:
            self._rest = bytearray(text[done:])
        if len(self._rest) > self._longest:
            raise self._too_long(self._rest)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._state == self._head:
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        if self._state != self._end:
            raise self._malformed("the text ends too early")
        return iter(())

    def _head(self, text: Text, at: int) -> int | None:
        found = _HEAD.match(text, at)
        if found:
            self._state = self._first
            return found.end()
        if len(text) > _HEAD_BYTES:
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        return None

    def _first(self, text: Text, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        self._state = self._tail if text.startswith(b"]", at) else self._document
        return at + (self._state == self._tail)

    def _document(self, text: Text, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        end = self._unfinished.end_of_document(text, at)
        if end:
            if end - at > self._longest:
                raise self._too_long(text[at:end])
            self._spans.append((at, end))
            self._state = self._between
            return end
        if end is None:
            raise self._wrong(text[at:])
        return None

    def _between(self, text: Text, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        if text[at] not in b",]":
            raise self._malformed("a comma or ] must follow a document")
        self._state = self._document if text[at] in b"," else self._tail
        return at + 1

    def _tail(self, text: Text, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        if text[at] not in b"}":
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        self._state = self._end
        return at + 1

    def _end(self, text: Text, at: int) -> int | None:
        if _end_of_space(text, at) < len(text):
            raise InvalidDocuments(_SHAPE, [Fault("", "", "there is text after the end of the JSON value")])
        return len(text) if at < len(text) else None

    def _at_once(self, text: Text, at: int) -> tuple[list[Document], int]:
        """All documents from a position to the last that seems to end in the text, and where that is; none if it only seemed so or one is wrong.

        What parses as documents is documents, so this saves looking for their ends one by one, a third of the time. Where one of them may be
        too long, that is what they are looked for.
        """
        closing = _CLOSING.search(text, max(at, len(text) - _CLOSING_BYTES))
        end = closing.start() + 1 if closing else text.rfind(b"}", at) + 1
        try:
            documents = decoded(self._decoder.decode, b"[" + text[at:end] + b"]") if 0 < end <= at + self._longest else []
        except WrongJson:
            documents = []
        if not documents:
            return [], at
        self._state = self._between
        self._unfinished = Unfinished()
        return documents, end

    def _documents(self, text: Text) -> list[Document]:
        try:
            return decoded(self._decoder.decode, b"[" + text[self._spans[0][0] : self._spans[-1][1]] + b"]")
        except WrongJson:
            return self._one_by_one(text)

    def _one_by_one(self, text: Text) -> list[Document]:
        documents: list[Document] = []
        faults: list[Fault] = []
        for position, (start, stop) in enumerate(self._spans, self._maker.position):
            try:
                documents.append(decoded(self._one.decode, text[start:stop]))
            except WrongJson as error:
                faults.append(fault_of(error, text[start:stop], position))
                if len(faults) == MAX_FAULTS:
                    break
        if faults:
            raise refusal(faults)
        return documents

    def _wrong(self, text: Text) -> InvalidDocuments:
        try:
            decoded(self._one.decode, text)
        except WrongJson as error:
            return refusal([fault_of(error, text, self._maker.position + len(self._spans))])
        return self._malformed("malformed JSON")

    def _malformed(self, detail: str) -> InvalidDocuments:
        position = self._maker.position + len(self._spans)
        return refusal([Fault(str(position), "", f"malformed JSON: {detail}")])

    def _too_long(self, text: Text) -> LimitExceeded:
        return too_long(text, f"at position {self._maker.position + len(self._spans)}", self._longest)


class Unfinished:
    """How far a document has been looked through whose end has not come yet."""

    def __init__(self) -> None:
        self._seen = 0
        self._depth = self._objects = 0
        self._in_string = False

    def end_of_document(self, text: Text, at: int) -> int | None:
        """Where the document that begins at ``at`` ends; 0: further on; None: it is no document. A next call must be of the same document."""
        if not self._seen:
            end = _end_of_plain_document(text, at)
            if end:
                return end
            if not text.startswith(b"{", at):
                return None
            self._seen, self._depth, self._objects = 1, 1, 0
        place = at + self._seen
        while self._depth and self._objects <= 1:
            place = self._pass(text, place)
            if place == len(text) or self._in_string:
                self._seen = place - at
                return 0
            opens = text.startswith(b"{", place)
            self._depth += 1 if opens else -1
            self._objects += opens
            place += 1
        self._seen = 0
        return None if self._depth else place

    def _pass(self, text: Text, place: int) -> int:
        """To the first brace outside strings, or as far as the text is whole; an escape that is cut waits for its other half."""
        if self._in_string:
            place = _end(_STRING, text, place)
            if not text.startswith(b'"', place):
                return place
            self._in_string = False
            place += 1
        place = _end(_PLAIN, text, place)
        if text.startswith(b'"', place):
            self._in_string = True
            place = _end(_STRING, text, place + 1)
        return place


def _end(pattern: re.Pattern[bytes], text: Text, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _end_of_space(text: Text, at: int) -> int:
    return _end(_SPACE, text, at)


def _end_of_plain_document(text: Text, at: int) -> int:
    """Where the document that begins here ends, if it has no brace or escape in a string, as most: counting quotes is enough to see it; else 0."""
    end = text.find(b"}", at) + 1
    plain = end and text.startswith(b"{", at) and text.find(b"{", at + 1, end) < 0 and text.find(b"\\", at, end) < 0
    return end if plain and text.count(b'"', at, end) % 2 == 0 else 0


_EXAMPLES = {
    "text": [{"id": "d1", "text": "The goalkeeper saved the penalty.", "label": "sport"}],
    "named features": [{"id": "d1", "features": {"goalkeeper": 0.2, "penalty": 0.9}, "label": "sport"}],
    "vectors": [{"id": "d1", "indices": [3, 17], "values": [0.2, 0.9], "label": "sport"}],
}
FORMAT = Format(
    "application/json",
    lambda bounds, spool: Unmarked(JsonDecoder(bounds.document_bytes)),
    {
        "schema": {"$ref": "#/components/schemas/Documents"},
        "examples": {kind: {"value": {"documents": documents}} for kind, documents in _EXAMPLES.items()},
    },
)
