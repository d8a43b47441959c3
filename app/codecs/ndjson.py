"""``application/x-ndjson``: a document a line."""

from collections.abc import Iterator

import msgspec

from app.codecs.base import MAX_FAULTS
from app.codecs.documents import BatchMaker, Document, fault_of, refusal
from app.codecs.lines import Lines
from app.codecs.text import WrongJson, decoded
from core.errors import Fault
from workers.datasets import Batch


class NdjsonDecoder:
    """Lines are decoded a block at a time, and one by one only to say which of them is wrong."""

    def __init__(self, document_bytes: int) -> None:
        self._lines = Lines(document_bytes)
        self._decoder = msgspec.json.Decoder(Document)
        self._maker = BatchMaker()

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        return self._batches(self._lines.feed(data))

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        return self._batches(self._lines.finish())

    def _batches(self, block: bytes) -> Iterator[Batch]:
        first = self._lines.number
        self._lines.number += block.count(b"\n")
        try:
            documents = decoded(self._decoder.decode_lines, block)
        except WrongJson:
            documents = []
        if len(documents) != block.count(b"\n") + (not block.endswith(b"\n")):
            documents = self._one_by_one(block, first)
        if documents:
            yield self._maker.batch(documents)

    def _one_by_one(self, block: bytes, first: int) -> list[Document]:
        documents: list[Document] = []
        faults: list[Fault] = []
        for number, line in enumerate(block.split(b"\n"), first):
            if not line.strip():
                continue
            position = self._maker.position + len(documents) + len(faults)
            try:
                documents.append(decoded(self._decoder.decode, line))
            except WrongJson as error:
                faults.append(fault_of(error, line, position, f"line {number}: "))
                if len(faults) == MAX_FAULTS:
                    break
        if faults:
            raise refusal(faults)
        return documents
