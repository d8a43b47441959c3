"""Tables of Arrow and Parquet: the columns text, label and id, whichever the request names. pyarrow is an extra; a
process of its own loads it, at the first body, and reads each body in a child.
"""

from importlib.util import find_spec

from app.codecs.base import Format, Reading
from app.codecs.tables.child import ChildDecoder, Kind
from app.errors import UnsupportedMediaType

_EXTRA = "a gateway with the extra arrow reads it: pip install 'halfmoon[arrow]'"


def _format(media_type: str, kind: Kind, what: str, aliases: tuple[str, ...], endings: tuple[str, ...]) -> Format:
    description = (
        f"{what}, read where the extra arrow is installed. By default the columns text, label or labels (lists), id, "
        "weight and vote:NAME are read, and others kept."
    )

    def decoder(reading: Reading) -> ChildDecoder:
        if find_spec("pyarrow") is None:
            raise UnsupportedMediaType(f"a body of type {media_type}", _EXTRA)
        return ChildDecoder(reading, kind)

    schema = {"schema": {"type": "string", "format": "binary", "description": description}}
    return Format(
        media_type,
        decoder,
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
