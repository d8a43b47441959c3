"""``application/x-ndjson``: a document a line."""

import msgspec

from app.codecs.base import Format
from app.codecs.byte_order_mark import Unmarked
from app.codecs.documents import BatchMaker, Document, fault_of
from app.codecs.json_text import WrongJson, decoded
from app.codecs.lines import LinesDecoder, WrongLine
from workers.repositories.datasets import Batch


class NdjsonDecoder(LinesDecoder):
    """Lines are decoded a block at a time, and one by one only to say which of them is wrong."""

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self._decoder = msgspec.json.Decoder(Document)
        self._maker = BatchMaker()

    def batch_of(self, block: bytes) -> Batch | None:
        """See LinesDecoder."""
        try:
            documents = decoded(self._decoder.decode_lines, block)
        except WrongJson:
            documents = []
        if len(documents) != block.count(b"\n") + (not block.endswith(b"\n")):
            documents = self.one_by_one(block, self._document)
        return self._maker.batch(documents) if documents else None

    def _document(self, line: bytes) -> Document | None:
        if not line.strip():
            return None
        try:
            return decoded(self._decoder.decode, line)
        except WrongJson as error:
            raise WrongLine(fault_of(error, line)) from None


FORMAT = Format(
    "application/x-ndjson",
    lambda bounds, spool: Unmarked(NdjsonDecoder(bounds.document_bytes)),
    {
        "schema": {"type": "string", "description": "A Document a line."},
        "example": '{"id": "d1", "text": "The goalkeeper saved the penalty.", "label": "sport"}\n{"id": "d2", "text": "A late goal."}\n',
    },
)
