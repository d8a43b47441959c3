"""Taking a training job in: everything that can be known to be wrong is refused before anything is kept."""

import hashlib
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import structlog

from app.codecs.json_text import InvalidJson, decode_json
from app.datasets.upload import make_dataset
from app.errors import InvalidRequest
from app.jobs.schemas import JobBody
from app.services import Services
from app.services.backlog import Allowance
from core.checks import check_options
from core.documents.kinds import KINDS
from core.errors import InvalidOption
from core.options.text import TextOptions
from core.registry import OFFERED
from core.registry import algorithm as find_algorithm
from workers.contract import Dataset, Job, Publication
from workers.errors import QueueUnavailable
from workers.names import check_name

_LONGEST_KEY = 255
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Maker(NamedTuple):
    """Who asks for a job, and how to know that it is asked for again."""

    key: str | None
    """for idempotency"""
    fingerprint: str
    caller: str | None
    """the API key"""


class Accepted(NamedTuple):
    """A job that is stored, and how many more its caller may have."""

    job: Job
    allowance: Allowance


def submit(services: Services, body: JobBody, key: str | None, caller: str | None) -> Accepted:
    """The job of this request, or of the same request made before with the same idempotency key.

    When a job has been stored, the store is not asked for anything more: an accepted job must not be answered with a failure.

    Raises QueueUnavailable while Redis is away, NotFound, InvalidName, InvalidRequest, InvalidDocuments, InvalidOption, UnknownAlgorithm,
    LimitExceeded, QuotaExceeded, TooManyRequests, IdempotencyConflict; after each of them nothing is kept.
    """
    _check(body, key)
    maker = _Maker(key, "" if key is None else _fingerprint(body), caller)
    allowance = services.backlog.allowance(caller)
    known = None if key is None else services.jobs.find_by_idempotency_key(key, maker.fingerprint)
    if known is not None:
        return Accepted(known, allowance)
    allowance.check()
    services.queue.ping()
    if body.dataset is not None:
        job, created = _submit(services, body, maker, services.datasets.get(body.dataset))
    else:
        job, created = _submit_documents(services, body, maker)
    return Accepted(job, allowance.without(int(created)))


def _submit_documents(services: Services, body: JobBody, maker: _Maker) -> tuple[Job, bool]:
    dataset = make_dataset(services, bytes(body.documents))
    needed = False
    try:
        job, needed = _submit(services, body, maker, dataset)
    finally:
        if not needed:
            services.datasets.delete(dataset.id)
    return job, needed


def _submit(services: Services, body: JobBody, maker: _Maker, dataset: Dataset) -> tuple[Job, bool]:
    options = check_options(body.algorithm, body.options, [label for label, _ in dataset.classes], dataset.n_documents)
    text = _text(body, dataset)
    job, created = services.jobs.submit(
        dataset=dataset.id,
        model=body.model,
        algorithm=body.algorithm,
        options=options.model_dump(mode="json", by_alias=True),
        seed=body.seed,
        text=text,
        start=_start(services, body, dataset),
        idempotency_key=maker.key,
        fingerprint=maker.fingerprint,
        caller=maker.caller,
    )
    if created:
        _log.info("job accepted", job=job.request.id, dataset=dataset.id, model=body.model, algorithm=body.algorithm, key=maker.caller)
        # the job is stored: if Redis went away just now, the reconciler will send it
        with suppress(QueueUnavailable):
            services.queue.enqueue(job.request.id)
    return job, created


def _text(body: JobBody, dataset: Dataset) -> dict[str, int] | None:
    """How text becomes terms, all of it, so that a version tells what it was trained with; None for a dataset of another kind."""
    if dataset.kind == "text":
        try:
            return TextOptions.parse(body.text or {}).model_dump()
        except InvalidOption as error:
            raise InvalidRequest(f"text.{error.field}", error.detail) from None
    if body.text is not None:
        raise InvalidRequest("text", f"says how text becomes terms, but the documents are {KINDS[dataset.kind]}")
    return None


def _start(services: Services, body: JobBody, dataset: Dataset) -> Publication | None:
    """The version to start from, fixed now: later versions and moved aliases do not change what a job was asked."""
    if body.start_from is None:
        return None
    version = services.models.resolve(body.start_from)
    if version.kind != dataset.kind:
        raise InvalidRequest("start_from", f"the model was trained on {KINDS[version.kind]}, but the documents are {KINDS[dataset.kind]}")
    return Publication(name=version.name, version=version.number)


def _check(body: JobBody, key: str | None) -> None:
    check_name("model", body.model)
    if (body.dataset is None) != _has_documents(body):
        raise InvalidRequest("dataset", "give either dataset or documents")
    if body.start_from is not None and find_algorithm(body.algorithm).start is None:
        able = ", ".join(algorithm.name for algorithm in OFFERED.values() if algorithm.start is not None)
        raise InvalidRequest("start_from", f"{body.algorithm} starts from nothing; algorithms that can start from a model are {able}")
    if key is not None and not (0 < len(key) <= _LONGEST_KEY):
        raise InvalidRequest("Idempotency-Key", f"must have 1 to {_LONGEST_KEY} characters")


def _has_documents(body: JobBody) -> bool:
    return bytes(body.documents) not in (b"", b"null")


def _fingerprint(body: JobBody) -> str:
    """Of what the request means, not of how its JSON is spaced or ordered."""
    meaning = {"dataset": body.dataset, "documents": _meaning(body.documents), "model": body.model, "algorithm": body.algorithm}
    meaning |= {"options": body.options, "seed": body.seed, "start_from": body.start_from}
    meaning |= {} if body.text is None else {"text": body.text}
    return hashlib.sha256(msgspec.json.encode(meaning, order="sorted")).hexdigest()


def _meaning(documents: msgspec.Raw) -> Any:
    """What they say; of what will be refused, as numbers out of range are, the text itself."""
    try:
        return decode_json(msgspec.json.decode, bytes(documents) or b"null")
    except InvalidJson:
        return bytes(documents)
