"""What a job takes from elsewhere when it is accepted: the version that its training starts from, and its size.

A version to start from must have learned from documents of the same kind, in the same parts, by the same encoder.
"""

from collections.abc import Mapping

from app.errors import InvalidRequest
from app.services import Services
from app.settings import GatewaySettings
from core.documents.kinds import FIELDS, KINDS, in_words
from core.documents.part_columns import EncoderId
from core.memory_estimate import RowsSize, expected_text_size, training_bytes
from core.options.base import Options, TrainingSize
from core.options.text import TextOptions
from storage.records import Dataset, EncoderRef, JobSize, Publication, Version

_REMEDY = "train without start_from"


def resolve_start(services: Services, name: str, dataset: Dataset, encoder: EncoderRef | None) -> Publication:
    """The version of this name. It is resolved now, so that later versions and moved aliases do not change the job.

    Raises NotFound, and InvalidRequest for one that knows other documents than those that the job has.
    """
    version = services.models.resolve(name)
    _check_parts(version, dataset, encoder)
    _check_encoder(version, encoder)
    return Publication(name=version.name, version=version.number)


def _check_parts(version: Version, dataset: Dataset, encoder: EncoderRef | None) -> None:
    given = [part.name for part in dataset.parts]
    if encoder is not None:
        given = sorted([*(given or [FIELDS["text"]]), EncoderId(encoder.name, encoder.digest).part])
    kind = "parts" if given else dataset.kind
    if version.kind == kind and (not given or version.facts.get("parts") == ", ".join(given)):
        return
    trained, own = version.facts.get("parts") or KINDS[version.kind], in_words(given) if given else KINDS[dataset.kind]
    detail = f"the model was trained on {trained}, but the documents have {own}"
    raise InvalidRequest("start_from", f"{detail}; {_encoder_remedy(version, encoder)}")


def _encoder_remedy(version: Version, encoder: EncoderRef | None) -> str:
    """What helps where one of model and job has an encoder and the other has not, or another one."""
    known = version.facts.get("encoder")
    if known is not None and (encoder is None or encoder.name != known):
        return f'the model learned with "encoder": "{known}", so name that, or {_REMEDY}'
    return f"leave out encoder, or {_REMEDY}" if known is None and encoder is not None else _REMEDY


def _check_encoder(version: Version, encoder: EncoderRef | None) -> None:
    """Weights of vectors that another encoder has made are weights of other things."""
    digest = version.facts.get("encoder_digest")
    if encoder is not None and digest is not None and digest != encoder.digest:
        detail = (
            f"the model learned with another encoder {encoder.name!r} ({str(digest)[:12]}) than the one here "
            f"({encoder.digest[:12]})"
        )
        raise InvalidRequest("start_from", f"{detail}; {_REMEDY}")


_HEADER_BYTES = 128
"""bytes of the head of an .npy file of one dimension"""


def size_of(dataset: Dataset, options: Options, text: Mapping[str, int] | None, settings: GatewaySettings) -> JobSize:
    """Size of a training on a dataset.

    The worker estimates again from the rows; this decides only when the job has its turn, and who takes it.
    """
    rows = _rows(dataset, TextOptions.parse(text or {}))
    size = TrainingSize(
        rows.n_rows, dataset.n_labeled, rows.n_nonzeros, rows.n_features, max(2, len(dataset.classes)), rows.n_parts
    )
    expected = max(rows.making_bytes, training_bytes(options, size))
    return (
        "small"
        if expected <= settings.small_job_bytes
        else "medium"
        if expected < settings.large_job_bytes
        else "large"
    )


def _rows(dataset: Dataset, text: TextOptions) -> RowsSize:
    """Size of the rows of a dataset by its manifest; of text an estimate."""
    if not dataset.parts:
        return _part_rows(dataset, dataset.kind == "text", dataset.n_nonzeros, dataset.n_features, "text", text)
    sizes = [
        _part_rows(dataset, part.kind == "text", part.n_nonzeros, part.n_features, f"{part.name}.text", text)
        for part in dataset.parts
    ]
    return RowsSize.of_parts(dataset.n_documents, sizes)


def _part_rows(
    dataset: Dataset, is_text: bool, nonzeros: int | None, features: int | None, file: str, text: TextOptions
) -> RowsSize:
    if is_text:
        return expected_text_size(dataset.n_documents, dataset.files[file].bytes - _HEADER_BYTES, text)
    return RowsSize(dataset.n_documents, nonzeros or 0, features or 0)
