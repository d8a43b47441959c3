"""``application/x-ndjson``: a document a line."""

import msgspec

from app.codecs.base import Format
from app.codecs.json.text import InvalidJson, decode_json
from app.codecs.json_documents.batches import BatchBuilder
from app.codecs.json_documents.document import Document, json_fault
from app.codecs.transport.byte_order_mark import WithoutByteOrderMark
from app.codecs.transport.lines import InvalidLine, LinesDecoder
from workers.repositories.datasets import Batch


class NdjsonDecoder(LinesDecoder):
    """Decodes lines a block at a time, and one by one only to find out which line is wrong."""

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self._decoder = msgspec.json.Decoder(Document)
        self._builder = BatchBuilder()

    def batch_of(self, block: bytes) -> Batch | None:
        """See LinesDecoder."""
        try:
            documents = decode_json(self._decoder.decode_lines, block)
        except InvalidJson:
            documents = []
        if len(documents) != block.count(b"\n") + (not block.endswith(b"\n")):
            documents = self.one_by_one(block, self._document)
        return self._builder.batch(documents) if documents else None

    def _document(self, line: bytes) -> Document | None:
        if not line.strip():
            return None
        try:
            return decode_json(self._decoder.decode, line)
        except InvalidJson as error:
            raise InvalidLine(json_fault(error, line)) from None


FORMAT = Format(
    "application/x-ndjson",
    lambda reading: WithoutByteOrderMark(NdjsonDecoder(reading.bounds.document_bytes)),
    {
        "schema": {"type": "string", "description": "A Document a line."},
        "example": '{"id": "d1", "text": "The goalkeeper saved the penalty.", "label": "sport"}\n{"id": "d2", "text": "A late goal."}\n',
    },
    aliases=("application/ndjson", "application/jsonl", "application/x-jsonl", "application/jsonlines", "application/x-jsonlines"),
)
