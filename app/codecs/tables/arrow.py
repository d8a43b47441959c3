"""Tables of Arrow and Parquet: the columns text, label and id, whichever the request names. pyarrow is an extra; a
process of its own loads it, at the first body, and reads each body in a child.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from app.codecs.base import Format, Reading
from app.codecs.tables.arrow_child import Kind, read_in_child
from app.codecs.transport.whole_body import WholeBodyDecoder
from app.errors import UnsupportedMediaType
from storage.repositories.datasets import Batch

_EXTRA = "a gateway with the extra arrow reads it: pip install 'halfmoon[arrow]'"


class ArrowDecoder(WholeBodyDecoder):
    """Yields batches of rows, when the body is whole."""

    def __init__(self, reading: Reading, media_type: str, kind: Kind) -> None:
        if find_spec("pyarrow") is None:
            raise UnsupportedMediaType(f"a body of type {media_type}", _EXTRA)
        super().__init__(reading)
        self._kind: Kind = kind
        self._warnings: list[str] = []

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        with self.descriptor_file() as file:
            self._warnings = yield from read_in_child(file, self._kind, self.reading)

    def warnings(self) -> Sequence[str]:
        """See Decoder: which columns are not learned from."""
        return self._warnings


def _format(media_type: str, kind: Kind, what: str, aliases: tuple[str, ...], endings: tuple[str, ...]) -> Format:
    description = (
        f"{what}, read where the extra arrow is installed. By default the columns text, label or labels (lists), id, "
        "weight and vote:NAME are read, and others kept."
    )
    schema = {"schema": {"type": "string", "format": "binary", "description": description}}
    return Format(
        media_type,
        lambda reading: ArrowDecoder(reading, media_type, kind),
        schema,
        compressed=True,
        aliases=aliases,
        has_columns=True,
        endings=endings,
    )


PARQUET = _format(
    "application/vnd.apache.parquet",
    "parquet",
    "A Parquet file",
    ("application/x-parquet", "application/parquet"),
    ("parquet", "pq"),
)
ARROW = _format(
    "application/vnd.apache.arrow.stream",
    "stream",
    "An Arrow stream or file",
    ("application/vnd.apache.arrow.file",),
    ("arrow", "feather"),
)
