"""Vectors of the texts of a dataset by a pre-trained encoder: made once, and kept in the store beside the dataset's
documents.
"""

from pathlib import Path

from core.documents.kinds import FIELDS, PartRows, Rows, TextRows, parts_of, spans
from core.documents.part_columns import EncoderId
from core.progress import Phase, Span
from core.watch import Watch
from storage.records import Encoding
from storage.repositories.datasets.files.npy import NpyWriter, open_array
from storage.store import Store, json_records, staging_folder
from storage.store.local_files import translate_os_errors
from workers.encoders.encoder import Encoder
from workers.encoders.rows import dense_rows

_SPAN_ROWS, _SPAN_BYTES = 16, 1 << 14
"""texts that are encoded between two checkpoints: a transformer makes some ten vectors of long texts in a second"""


def with_vectors(
    store: Store, documents: str, rows: Rows, id: EncoderId, encoder: Encoder, watch: Watch, span: Span
) -> PartRows:
    """The documents, stored under the id ``documents``, with a part more: the vectors of their texts. They have texts.

    Making vectors takes a ``span`` of the work of ``watch``; raises Stopped.
    """
    key, parts = f"datasets/{documents}/encodings/{id.digest}", parts_of(rows)
    texts = parts[FIELDS["text"]]
    assert isinstance(texts, TextRows)
    known = json_records.find(store, f"{key}.json", Encoding)
    if known is None:
        with staging_folder(store) as folder:
            file = store.upload(f"{key}.npy", _written(folder, texts, encoder, watch, span))
        known = Encoding(width=encoder.width, file=file)
        json_records.create(store, f"{key}.json", known)
    vectors = open_array(store.local(known.file)).reshape(texts.n_rows, known.width)
    return PartRows(dict(sorted({**parts, id.part: dense_rows(vectors)}.items())))


@translate_os_errors("write", "the vectors of texts")
def _written(folder: Path, texts: TextRows, encoder: Encoder, watch: Watch, span: Span) -> Path:
    with NpyWriter(folder / "vectors.npy", "<f4") as file:
        for start, stop in spans(texts.indptr, _SPAN_ROWS, _SPAN_BYTES):
            file.append(encoder.encode(list(texts.between(start, stop))).ravel())
            watch.latest = watch.latest._replace(phase=Phase("vectors"), fraction=span.position(stop / texts.n_rows))
            watch()
        return file.finish()
