"""Submission of a training job: it is validated completely before anything is stored.

A version to start from must have learned from documents of the same kind, in the same parts, by the same encoder."""

import hashlib
from collections.abc import Generator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import structlog
from msgspec import UNSET
from msgspec.structs import fields

from app.annotations.service import resolved
from app.codecs.dispatch import check_unread
from app.codecs.json.struct import decoded_slices, is_given
from app.codecs.json.text import InvalidJson
from app.datasets.service import make_dataset
from app.errors import InvalidRequest
from app.jobs.schemas import JobBody
from app.services.admission import Allowance
from app.services.wiring import Services
from app.settings import GatewaySettings
from core.documents.kinds import FIELDS, KINDS, in_words, is_dense
from core.documents.part_columns import EncoderId
from core.errors import InvalidOption
from core.memory_estimate import RowsSize, expected_text_size, training_bytes
from core.models.tree import check_tree
from core.options.base import Options, TrainingSize
from core.options.text import TextOptions
from core.registry import OFFERED, check_options, find_algorithm, with_rest
from storage.errors import LimitExceeded, RedisUnavailable
from storage.names import check_name
from storage.process.tracing import tracing
from storage.records import (
    Dataset,
    DatasetPart,
    EncoderRef,
    Job,
    JobDraft,
    JobSize,
    JobSpec,
    Publication,
    QueuePlace,
    Version,
)
from storage.repositories.idempotency import IdempotencyKey
from workers.encoders.encoder import EncoderUnavailable

_MAX_KEY_LENGTH = 255
_ALWAYS_MEANT = ("dataset", "model", "algorithm", "options", "seed", "start_from")
"""Fields of a body that its fingerprint has in any case; the others only where they are not left out."""
_decode = msgspec.json.Decoder(list[Any]).decode
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_REMEDY = "train without start_from"


def submit(
    services: Services,
    body: JobBody,
    idempotency_key: str | None,
    key_id: str | None,
    query: Mapping[str, str] = MappingProxyType({}),
) -> Generator[None, None, tuple[Job, Allowance]]:
    """The job of this request, or of an earlier equal request with the same idempotency key, and the allowance of
    further ones. Documents are read a slice a step, between which others go on.

    ``query`` says what becomes of their unknown fields (``extra``).
    Nothing is read from the store after the job is stored: a request whose job was accepted must not fail.

    Raises RedisUnavailable while Redis is unavailable, NotFound, InvalidName, InvalidRequest, InvalidDocuments,
    InvalidOption, UnknownAlgorithm, LimitExceeded, QuotaExceeded, TooManyRequests, IdempotencyConflict, JobDeleted.
    After an error nothing is kept.
    """
    check_name("model", body.model)
    if (body.dataset is None) != is_given(body.documents):
        raise InvalidRequest("dataset", "give either dataset or documents")
    if body.annotations is not None and body.dataset is None:
        raise InvalidRequest("annotations", "needs a dataset: documents in the body have no log")
    if body.dataset is not None:
        check_unread(query, "those of a dataset have been read")
    if body.start_from is not None and find_algorithm(body.algorithm).start is None:
        able = ", ".join(algorithm.name for algorithm in OFFERED.values() if algorithm.start is not None)
        raise InvalidRequest(
            "start_from", f"{body.algorithm} cannot start from a model; algorithms that can are {able}"
        )
    if idempotency_key is not None and not (0 < len(idempotency_key) <= _MAX_KEY_LENGTH):
        raise InvalidRequest("Idempotency-Key", f"must have 1 to {_MAX_KEY_LENGTH} characters")
    key = None
    if idempotency_key is not None:
        fingerprint = yield from _fingerprint(body, query, services.settings.max_document_bytes)
        key = IdempotencyKey(idempotency_key, key_id, fingerprint)
    allowance = services.backlog.allowance(key_id)
    known = None if key is None else services.jobs.find_by_idempotency_key(key)
    if known is not None:
        return known, allowance
    allowance.check()
    services.queue.ping()
    services.admission.check()
    if body.dataset is not None:
        job, created = _create(services, body, services.datasets.get(body.dataset), key_id, key)
    else:
        dataset, created = (yield from make_dataset(services, body.documents, query)), False
        try:
            job, created = _create(services, body, dataset, key_id, key)
        finally:
            if not created:
                services.datasets.delete(dataset.id)
    return job, allowance._replace(left=allowance.left - created)


def _create(
    services: Services, body: JobBody, dataset: Dataset, key_id: str | None, key: IdempotencyKey | None
) -> tuple[Job, bool]:
    """Check what depends on the dataset, then store the job and enqueue it; the job, and whether it is new."""
    annotations = resolved(services, dataset.id, body.annotations)
    classes, n_labeled = [label for label, _ in dataset.classes], dataset.n_labeled
    if annotations:
        opened = services.datasets.open(dataset.id, annotations)
        classes, n_labeled = list(opened.classes), int(np.count_nonzero(opened.labeled))
    several = dataset.label_kind == "several"
    try:
        n_unlabeled = 0 if several else dataset.n_documents - n_labeled
        classes = with_rest(body.algorithm, classes, body.other, n_labeled, n_unlabeled)
    except InvalidOption as error:
        raise InvalidRequest(error.field, error.detail) from None
    options = check_options(body.algorithm, body.options, classes, dataset.n_documents, several=several)
    if body.nested:
        check_tree(classes, several=several)
        if not (options.selects_method or options.needs_probabilities):
            raise InvalidOption("nested", 'needs probabilities; give the option "probabilities": true, or take auto')
    start = None if body.start_from is None else services.models.resolve(body.start_from)
    text = _text(body, dataset)
    encoder = _encoder(services, body, dataset, start, has_text=text is not None)
    in_other_form = {
        "dataset": dataset.id,
        "options": options.model_dump(mode="json", by_alias=True),
        "text": text,
        "encoder": encoder,
        "annotations": annotations,
    }
    draft = JobDraft(
        **{name: getattr(body, name) for name in JobSpec.model_fields} | in_other_form,
        model=body.model,
        start=None if start is None else checked_start(start, dataset, encoder),
        size=size_of(dataset, options, text, services.settings, encoder),
        caller=key_id,
        traceparent=tracing.traceparent(),
    )
    job, created = services.jobs.create(draft, key)
    if created:
        _log.info(
            "job accepted",
            job=job.request.id,
            dataset=dataset.id,
            model=body.model,
            algorithm=body.algorithm,
            key=key_id,
        )
        # if Redis is unavailable by now, the reconciler enqueues the stored job later
        with suppress(RedisUnavailable):
            services.queue.enqueue(job.request.id, QueuePlace(job.request.size, key_id))
    return job, created


def _text(body: JobBody, dataset: Dataset) -> dict[str, int] | None:
    """All options of how text becomes terms, defaults included, for the record; None for a dataset of another kind."""
    if dataset.kind == "text" or any(part.kind == "text" for part in dataset.parts):
        try:
            return TextOptions.parse(body.text or {}).model_dump()
        except InvalidOption as error:
            raise InvalidRequest(f"text.{error.field}", error.detail) from None
    if body.text is not None:
        raise InvalidRequest("text", f"is for documents that have text, but these are {KINDS[dataset.kind]}")
    return None


def _encoder(
    services: Services, body: JobBody, dataset: Dataset, start: Version | None, *, has_text: bool
) -> EncoderRef | None:
    """The encoder of the job, with its digest of now: a worker with another one refuses the job."""
    name = body.encoder
    if name is UNSET:
        # who sends vectors has an encoder
        bare = has_text and not any(is_dense(part.name) for part in dataset.parts)
        learned = services.encoders.default if start is None else start.facts.get("encoder")
        name = str(learned) if bare and learned else None
    if name is None:
        return None
    if not has_text:
        raise InvalidRequest("encoder", f"reads text, but the documents are {KINDS[dataset.kind]}")
    try:
        id = services.encoders.id(name)
    except EncoderUnavailable as error:
        raise InvalidRequest("encoder", f"{name!r} {error}") from None
    if any(part.name == id.part for part in dataset.parts):
        raise InvalidRequest("encoder", f"makes the part {id.part}, which the documents have already")
    return EncoderRef(name=id.name, digest=id.digest)


def _fingerprint(body: JobBody, query: Mapping[str, str], longest: int) -> Generator[None, None, str]:
    """Digest of the meaning of a request; the spacing and the order of its JSON do not matter."""
    given = {each.name: getattr(body, each.name) for each in fields(body) if each.name != "documents"}
    optional = {each.name: each.default for each in fields(body) if each.name not in _ALWAYS_MEANT}
    meaning = {name: value for name, value in given.items() if name not in optional or value != optional[name]}
    meaning |= {"documents": None, **({"extra": query["extra"]} if "extra" in query else {})}
    before, null, after = msgspec.json.encode(meaning, order="sorted").partition(b'"documents":null')
    digest = hashlib.sha256(before + null.removesuffix(b"null"))
    text = memoryview(body.documents)
    if is_given(body.documents) and text[0] == ord("["):
        # in one spacing and order of JSON; as they are if they will be refused
        digest.update(b"[")
        try:
            for count, each in enumerate(decoded_slices(_decode, text, longest, "a document")):
                digest.update((b"," if count else b"") + msgspec.json.encode(each, order="sorted")[1:-1])
                yield
        except (InvalidJson, LimitExceeded):
            digest.update(text)
        digest.update(b"]")
    else:
        digest.update(text or b"null")
    digest.update(after)
    return digest.hexdigest()


def checked_start(version: Version, dataset: Dataset, encoder: EncoderRef | None) -> Publication:
    """The version to start from, by its number.

    Raises InvalidRequest if it knows other documents than those that the job has.
    """
    given = [part.name for part in dataset.parts]
    if encoder is not None:
        given = sorted([*(given or [FIELDS["text"]]), EncoderId(encoder.name, encoder.digest).part])
    kind = "parts" if given else dataset.kind
    if version.kind != kind or (given and version.facts.get("parts") != ", ".join(given)):
        trained = version.facts.get("parts") or KINDS[version.kind]
        own = in_words(given) if given else KINDS[dataset.kind]
        known, remedy = version.facts.get("encoder"), _REMEDY
        if known is not None and (encoder is None or encoder.name != known):
            remedy = f'the model learned with "encoder": "{known}", so name that, or {_REMEDY}'
        elif known is None and encoder is not None:
            remedy = f"leave out encoder, or {_REMEDY}"
        detail = f"the model was trained on {trained}, but the documents have {own}"
        raise InvalidRequest("start_from", f"{detail}; {remedy}")
    # weights of vectors that another encoder has made are weights of other things
    digest = version.facts.get("encoder_digest")
    if encoder is not None and digest is not None and digest != encoder.digest:
        detail = (
            f"the model learned with another encoder {encoder.name!r} ({str(digest)[:12]}) than the one here "
            f"({encoder.digest[:12]})"
        )
        raise InvalidRequest("start_from", f"{detail}; {_REMEDY}")
    return Publication(name=version.name, version=version.number)


_HEADER_BYTES = 128
"""bytes of the head of an .npy file of one dimension"""
_WIDTH = 384
"""numbers of a vector, as most small encoders make them: to know it would take to load the encoder"""


def size_of(
    dataset: Dataset,
    options: Options,
    text: Mapping[str, int] | None,
    settings: GatewaySettings,
    encoder: EncoderRef | None = None,
) -> JobSize:
    """Size of a training on a dataset.

    The worker estimates again from the rows; this decides only when the job has its turn, and who takes it.
    """
    rows = _rows(dataset, TextOptions.parse(text or {}))
    if encoder is not None:
        rows = RowsSize.of_parts(rows.n_rows, [rows, RowsSize.of_vectors(rows.n_rows, _WIDTH)])
    size = TrainingSize(
        rows.n_rows,
        dataset.n_labeled,
        rows.n_nonzeros,
        rows.n_features,
        max(2, len(dataset.classes)),
        rows.n_parts,
        several=dataset.label_kind == "several",
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
        return _part_rows(dataset, dataset, "text", text)
    sizes = [_part_rows(dataset, part, f"{part.name}.text", text) for part in dataset.parts]
    return RowsSize.of_parts(dataset.n_documents, sizes)


def _part_rows(dataset: Dataset, part: Dataset | DatasetPart, file: str, text: TextOptions) -> RowsSize:
    """Size of the rows of a part, of a dataset without parts of itself; ``file`` would have its text."""
    if part.kind == "text":
        return expected_text_size(dataset.n_documents, dataset.files[file].bytes - _HEADER_BYTES, text)
    return RowsSize(dataset.n_documents, part.n_nonzeros or 0, part.n_features or 0)
