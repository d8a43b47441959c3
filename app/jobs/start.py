"""The version that a training starts from: it must have learned from documents of the same kind, in the same parts, by the same encoder."""

from app.errors import InvalidRequest
from app.services import Services
from core.documents.kinds import FIELDS, KINDS, in_words
from core.documents.part_columns import EncoderId
from workers.contract import Dataset, EncoderRef, Publication, Version

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
        detail = f"the model learned with another encoder {encoder.name!r} ({str(digest)[:12]}) than the one here ({encoder.digest[:12]})"
        raise InvalidRequest("start_from", f"{detail}; {_REMEDY}")
