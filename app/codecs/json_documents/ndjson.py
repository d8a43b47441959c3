"""``application/x-ndjson``: a document a line."""

from app.codecs.base import Format, Reading
from app.codecs.json.text import InvalidJson
from app.codecs.json_documents.batches import BatchBuilder
from app.codecs.json_documents.document import Document, DocumentDecoder
from app.codecs.transport.encodings import Filtered, WithoutByteOrderMark
from app.codecs.transport.lines import InvalidLine, LinesDecoder
from storage.repositories.datasets import Batch


class NdjsonDecoder(LinesDecoder):
    """Decodes lines a block at a time, and one by one only to find out which line is wrong."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading.bounds.document_bytes)
        self._decoder = DocumentDecoder(reading)
        self._builder = BatchBuilder()

    def batch_of(self, block: bytes) -> Batch | None:
        """See LinesDecoder."""
        documents = self._decoder.lines(block)
        if len(documents) != block.count(b"\n") + (not block.endswith(b"\n")):
            documents = self.one_by_one(block, self._document)
        return self._builder.batch(documents) if documents else None

    def _document(self, line: bytes) -> Document | None:
        if not line.strip():
            return None
        try:
            return self._decoder.one(line)
        except InvalidJson as error:
            raise InvalidLine(self._decoder.fault(error, line)) from None


FORMAT = Format(
    "application/x-ndjson",
    lambda reading: Filtered(WithoutByteOrderMark(), NdjsonDecoder(reading)),
    {
        "schema": {"type": "string", "description": "A Document a line."},
        "example": '{"id": "d1", "text": "The goalkeeper saved the penalty.", "label": "sport"}\n{"id": "d2", '
        '"text": "A late goal."}\n',
    },
    aliases=(
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonl",
        "application/jsonlines",
        "application/x-jsonlines",
    ),
    has_columns=True,
    endings=("ndjson", "jsonl"),
)
