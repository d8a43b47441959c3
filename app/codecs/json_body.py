"""``application/json``: ``{"documents": [...]}``, read as it comes."""

import re
from collections.abc import Callable, Iterator

import msgspec

from app.codecs.base import MAX_FAULTS
from app.codecs.documents import BatchMaker, Document, fault_of, refusal
from core.errors import Fault, InvalidDocuments
from workers.datasets import Batch
from workers.errors import LimitExceeded

# A valid document has no object inside, so braces outside strings bound it. These find where documents end; msgspec parses them.
_INSIDE = rb'\{(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+'
_DOCUMENT = re.compile(_INSIDE + rb"\}", re.DOTALL)
_UNFINISHED = re.compile(_INSIDE + rb'(?:"(?:[^"\\]++|\\.)*+\\?)?\Z', re.DOTALL)
_HEAD = re.compile(rb'\s*\{\s*"documents"\s*:\s*\[')
_CLOSING = re.compile(rb"\}\s*\]\s*\}\s*\Z")
_CLOSING_BYTES = 64
_SPACE = re.compile(rb"\s*")
_HEAD_BYTES = 1024
_SHAPE = 'the body must be {"documents": [...]} and nothing else'


class JsonDecoder:
    """A machine of six states, each a method: it moves on from a position, or returns None when more text must come first."""

    def __init__(self, document_bytes: int) -> None:
        self._longest = document_bytes
        self._decoder = msgspec.json.Decoder(list[Document])
        self._one = msgspec.json.Decoder(Document)
        self._maker = BatchMaker()
        self._rest = b""
        self._spans: list[tuple[int, int]] = []
        self._state: Callable[[bytes, int], int | None] = self._head

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        text = self._rest + data if self._rest else data
        at: int | None = 0
        done, tried = 0, False
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
        self._rest = text[done:]
        if len(self._rest) > self._longest:
            raise LimitExceeded("bytes in a document", self._longest)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._state == self._head:
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        if self._state != self._end:
            raise self._malformed("the text ends too early")
        return iter(())

    def _head(self, text: bytes, at: int) -> int | None:
        found = _HEAD.match(text, at)
        if found:
            self._state = self._first
            return found.end()
        if len(text) > _HEAD_BYTES:
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        return None

    def _first(self, text: bytes, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        self._state = self._tail if text.startswith(b"]", at) else self._document
        return at + (self._state == self._tail)

    def _document(self, text: bytes, at: int) -> int | None:
        at = _end_of_space(text, at)
        end = _end_of_document(text, at)
        if end:
            self._spans.append((at, end))
            self._state = self._between
            return end
        if at < len(text) and not _UNFINISHED.match(text, at):
            raise self._wrong(text[at:])
        return None

    def _between(self, text: bytes, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        if text[at] not in b",]":
            raise self._malformed("a comma or ] must follow a document")
        self._state = self._document if text[at] in b"," else self._tail
        return at + 1

    def _tail(self, text: bytes, at: int) -> int | None:
        at = _end_of_space(text, at)
        if at == len(text):
            return None
        if text[at] not in b"}":
            raise InvalidDocuments(_SHAPE, [Fault("", "documents", _SHAPE)])
        self._state = self._end
        return at + 1

    def _end(self, text: bytes, at: int) -> int | None:
        if _end_of_space(text, at) < len(text):
            raise InvalidDocuments(_SHAPE, [Fault("", "", "there is text after the end of the JSON value")])
        return len(text) if at < len(text) else None

    def _at_once(self, text: bytes, at: int) -> tuple[list[Document], int]:
        """All documents from a position to the last that seems to end in the text, and where that is; none if it only seemed so or one is wrong.

        What parses as documents is documents, so this saves looking for their ends one by one, a third of the time.
        """
        closing = _CLOSING.search(text, max(at, len(text) - _CLOSING_BYTES))
        end = closing.start() + 1 if closing else text.rfind(b"}", at) + 1
        try:
            documents = self._decoder.decode(b"[" + text[at:end] + b"]") if end else []
        except (msgspec.MsgspecError, UnicodeDecodeError):
            documents = []
        if not documents:
            return [], at
        self._state = self._between
        return documents, end

    def _documents(self, text: bytes) -> list[Document]:
        try:
            return self._decoder.decode(b"[" + text[self._spans[0][0] : self._spans[-1][1]] + b"]")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._one_by_one(text)

    def _one_by_one(self, text: bytes) -> list[Document]:
        documents: list[Document] = []
        faults: list[Fault] = []
        for position, (start, stop) in enumerate(self._spans, self._maker.position):
            try:
                documents.append(self._one.decode(text[start:stop]))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                faults.append(fault_of(error, text[start:stop], position))
                if len(faults) == MAX_FAULTS:
                    break
        if faults:
            raise refusal(faults)
        return documents

    def _wrong(self, text: bytes) -> InvalidDocuments:
        try:
            self._one.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return refusal([fault_of(error, text, self._maker.position + len(self._spans))])
        return self._malformed("malformed JSON")

    def _malformed(self, detail: str) -> InvalidDocuments:
        position = self._maker.position + len(self._spans)
        return refusal([Fault(str(position), "", f"malformed JSON: {detail}")])


def _end_of_space(text: bytes, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _end_of_document(text: bytes, at: int) -> int:
    """Where the document that begins here ends, or 0. Most have no brace or escape in a string: counting quotes is enough to see it."""
    end = text.find(b"}", at) + 1
    plain = end and text.startswith(b"{", at) and text.find(b"{", at + 1, end) < 0 and text.find(b"\\", at, end) < 0
    if plain and text.count(b'"', at, end) % 2 == 0:
        return end
    found = _DOCUMENT.match(text, at)
    return found.end() if found else 0
