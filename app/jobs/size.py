"""Size of a job before it is queued: by the memory that its training is expected to need."""

from collections.abc import Mapping

from app.settings import GatewaySettings
from core.memory_estimate import RowsSize, expected_text_size, training_bytes
from core.options.base import Options, TrainingSize
from core.options.text import TextOptions
from workers.contract import Dataset, JobSize

_HEADER_BYTES = 128
"""bytes of the head of an .npy file of one dimension"""


def size_of(dataset: Dataset, options: Options, text: Mapping[str, int] | None, settings: GatewaySettings) -> JobSize:
    """Size of a training on a dataset. The worker estimates again from the rows; this decides only when the job has its turn, and who takes it."""
    rows = _rows(dataset, TextOptions.parse(text or {}))
    size = TrainingSize(rows.n_rows, dataset.n_labeled, rows.n_nonzeros, rows.n_features, max(2, len(dataset.classes)), rows.n_parts)
    expected = max(rows.making_bytes, training_bytes(options, size))
    return "small" if expected <= settings.small_job_bytes else "medium" if expected < settings.large_job_bytes else "large"


def _rows(dataset: Dataset, text: TextOptions) -> RowsSize:
    """Size of the rows of a dataset by its manifest; of text an estimate."""
    if not dataset.parts:
        return _part_rows(dataset, dataset.kind == "text", dataset.n_nonzeros, dataset.n_features, "text", text)
    sizes = [_part_rows(dataset, part.kind == "text", part.n_nonzeros, part.n_features, f"{part.name}.text", text) for part in dataset.parts]
    return RowsSize.of_parts(dataset.n_documents, sizes)


def _part_rows(dataset: Dataset, is_text: bool, nonzeros: int | None, features: int | None, file: str, text: TextOptions) -> RowsSize:
    if is_text:
        return expected_text_size(dataset.n_documents, dataset.files[file].bytes - _HEADER_BYTES, text)
    return RowsSize(dataset.n_documents, nonzeros or 0, features or 0)
