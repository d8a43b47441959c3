"""A whole format for tests: ``label index`` a line, ``?`` for no label."""

import numpy as np

from app.codecs.base import Format
from app.codecs.numbers import rows_of
from app.codecs.transport.lines import LinesDecoder
from storage.repositories.datasets import Batch


class ToyDecoder(LinesDecoder):
    """Decodes lines of a label and the index of a feature."""

    def batch_of(self, block: bytes) -> Batch | None:
        """See LinesDecoder."""
        pairs = [line.split() for line in block.decode().splitlines()]
        indices = np.array([int(index) for _, index in pairs])
        rows = rows_of(np.arange(len(pairs) + 1), indices, np.ones(len(pairs)))
        return Batch(rows, [None if label == "?" else label for label, _ in pairs], None)


FORMAT = Format(
    "text/x-toy",
    lambda reading: ToyDecoder(reading.bounds.document_bytes),
    {"schema": {"type": "string", "description": "label index a line."}},
    endings=("toy",),
)
