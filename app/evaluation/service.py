"""Evaluation of a request: read the documents, score them, compute the figures, answer as JSON, HTML or SVG."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.responses import Response

from app.annotations.service import resolved
from app.codecs.dispatch import check_unread, document_blocks, media_type_of
from app.codecs.json.struct import is_given
from app.codecs.json.text import in_words
from app.errors import InvalidRequest
from app.evaluation.evaluator import Evaluator, SeveralEvaluator
from app.evaluation.report import PLOTS, SVG, page_of, plot_of
from app.evaluation.schemas import EvaluateBody, Evaluation
from app.http.answers import HTML, JSON, json_answer, negotiate, temporary_file
from app.http.requests import RESERVATION, read_blocks, read_json, run_until_disconnect
from app.predictions.scoring import run_scoring, score_posted, score_stored
from app.predictions.service import Loaded, decode_documents, load_model
from app.services.wiring import Services
from core.documents.kinds import row_digests
from core.errors import MAX_FAULTS, Fault, refuse
from storage.errors import NotFound
from storage.process.settings import Settings
from storage.records import Dataset, LabelKind, Version
from storage.repositories.datasets import Batch, Documents
from storage.repositories.datasets.label_files import KNOWN
from storage.repositories.datasets.labels import Classes, list_faults

_MOST_TOLD = 100_000
_TOLD = "{} of the {} labeled documents were trained on with their labels: the figures are too optimistic"


async def evaluate(request: Request, services: Services, reference: str) -> Response:
    """Evaluate the version to which ``reference`` refers now, on the labeled documents of the body or of a dataset.

    Raises NotAcceptable, NotFound, Forbidden, InvalidDocuments, InvalidRequest, LimitExceeded, TooManyRequests,
    StoreUnavailable, UnsupportedMediaType.
    """
    plot = request.query_params.get("plot")
    media_type = negotiate(request, (JSON, HTML, SVG) if plot is None else (SVG,))
    if media_type == SVG and plot not in PLOTS:
        raise InvalidRequest("plot", f"must be one of {', '.join(PLOTS)}")
    asked, batches = await _read(request, services)
    loaded = await load_model(services, reference)
    arguments = _answer, services, loaded, asked, batches, media_type, plot
    if asked.dataset is None:
        return loaded.marked(await run_until_disconnect(request, services.pools.evaluate, *arguments))
    return loaded.marked(await run_scoring(request, services, *arguments))


async def _read(request: Request, services: Services) -> tuple[EvaluateBody, Iterable[Batch]]:
    """What a request asks, and the documents of its body, if it has some.

    A dataset needs a key that may read datasets, documents in the body one that may predict.
    """
    bounds = services.settings.prediction_bounds
    if request.method == "GET":
        services.access.authorize(request.scope, "datasets")
        return _query(request), ()
    if media_type_of(request.headers) != JSON:
        services.access.authorize(request.scope, "predictions")
        reserve, query = request.scope[RESERVATION].grow, request.query_params
        posted_blocks = await read_blocks(request, bounds)
        return EvaluateBody(), decode_documents(posted_blocks, request.headers, bounds, reserve, query)
    body = await read_json(request, services, EvaluateBody)
    posted = is_given(body.documents)
    if posted == (body.dataset is not None):
        raise InvalidRequest("dataset", "give either dataset or documents")
    if posted and body.held_out:
        raise InvalidRequest("held_out", "needs a dataset: whether documents in the body were trained on is unknown")
    if posted and body.annotations is not None:
        raise InvalidRequest("annotations", "needs a dataset: documents in the body have their labels with them")
    services.access.authorize(request.scope, "predictions" if posted else "datasets")
    if not posted:
        check_unread(request.query_params, "those of a dataset have been read")
        return body, ()
    return body, decode_documents(
        document_blocks(body.documents), {"content-type": JSON}, bounds, query=request.query_params
    )


_SINGLE = (
    "has several labels, and the model gives each document one; evaluate a model of several labels, or a dataset with "
    "label_kind single"
)


def _query(request: Request) -> EvaluateBody:
    """The query of a link to an evaluation; raises InvalidRequest."""
    given = {
        name: value for name, value in request.query_params.items() if name in ("dataset", "held_out", "annotations")
    }
    if "dataset" not in given:
        raise InvalidRequest("dataset", "is needed: the dataset to evaluate on")
    try:
        return msgspec.convert(given, EvaluateBody, strict=False)
    except msgspec.ValidationError as error:
        detail, _, field = str(error).partition(" - at `$.")
        raise InvalidRequest(field.rstrip("`"), in_words(detail)) from None


def _answer(
    services: Services,
    loaded: Loaded,
    asked: EvaluateBody,
    batches: Iterable[Batch],
    media_type: str,
    plot: str | None,
) -> Response:
    version, model = loaded.version, loaded.model
    with temporary_file(services.store) as file:
        kind = SeveralEvaluator if model.several else Evaluator
        evaluator = kind(model, file, services.settings.max_ranked_scores)
        about: dict[str, Any] = {"dataset": None}
        if asked.dataset is None:
            known, counts = told_documents(services, version), Counter[bool]()
            checked = _checked(batches, services.settings, known or (), counts, version.label_kind)
            evaluator.add_all(score_posted(model, checked))
            n_told = None if known is None else counts[True]
            warnings = [_TOLD.format(n_told, counts.total())] if n_told else []
        else:
            dataset = services.datasets.get(asked.dataset)
            documents = services.datasets.open(dataset.id, resolved(services, dataset.id, asked.annotations))
            if documents.label_kind == "several" and version.label_kind == "single":
                raise InvalidRequest("dataset", _SINGLE)
            overlap = training_overlap(services, version, dataset)
            if asked.held_out and not overlap.known:
                raise InvalidRequest(
                    "held_out",
                    f"is not possible: dataset {version.dataset!r}, on which the model was trained, was deleted",
                )
            positions = positions_to_evaluate(documents, overlap, asked.held_out)
            evaluator.add_all(score_stored(model, documents, positions, encode=True))
            about = {"dataset": dataset.id, "documents": dataset.n_documents}
            n_told = told(overlap, positions)
            warnings = overlap_warnings(overlap, version, positions)
        figures = evaluator.figures() | about
        figures["warnings"] = [*warnings, *figures["warnings"]]
        break_evens = [each.break_even for each in figures["classes"] if each.break_even is not None]
        evaluation = Evaluation(
            model=version.name,
            version=version.number,
            evaluated_at=datetime.now(UTC),
            told=n_told,
            macro_break_even=sum(break_evens) / len(break_evens) if break_evens else None,
            **figures,
        )
    if plot is not None:
        return plot_of(evaluation, plot)
    return page_of(evaluation) if media_type == HTML else json_answer(evaluation)


def _checked(
    batches: Iterable[Batch], settings: Settings, known: Container[bytes], counts: Counter[bool], label_kind: LabelKind
) -> Iterator[Batch]:
    """The batches, after the checks of a dataset's labels; adds to ``counts`` the labeled documents whose digests
    are ``known``, and others. Raises InvalidDocuments and LimitExceeded.
    """
    classes, position = Classes(settings.max_classes), 0
    for batch in batches:
        ids = batch.ids or [None] * batch.rows.n_rows
        faults = [(row, "label", detail) for row, detail in classes.faults(batch.labels, MAX_FAULTS)]
        given: Sequence[Any] = batch.labels
        if batch.label_lists is not None:
            given = batch.label_lists.applied
            if label_kind == "single":
                faults += [(row, "labels", _SINGLE) for row, own in enumerate(given) if own is not None]
            faults += classes.faults_of_lists(batch.label_lists, MAX_FAULTS)
            faults += list_faults(batch.label_lists, batch.labels, settings.max_document_labels)
        refuse(Fault(ids[row] or position + row, field, detail) for row, field, detail in faults)
        classes.encode(given if batch.label_lists is None else [label for own in given for label in own or ()])
        labeled = np.flatnonzero([own is not None for own in given])
        counts.update(digest in known for digest in row_digests(batch.rows, labeled))
        position += batch.rows.n_rows
        yield batch


def told_documents(services: Services, version: Version) -> frozenset[bytes] | None:
    """Digests of the labeled documents of a version; None if its dataset was deleted, or has so many labels that to
    read them would take seconds.
    """
    try:
        training = services.datasets.open(version.dataset, version.annotations)
    except NotFound:
        return None
    positions = np.flatnonzero(training.labeled)
    return frozenset(row_digests(training.rows, positions)) if len(positions) <= _MOST_TOLD else None


class TrainingOverlap(NamedTuple):
    """The documents of a dataset that a version was trained on."""

    labeled: NDArray[np.bool_] | None
    """Whether a document was trained on with its label, of shape (n_documents,); None if the training had other
    documents."""
    known: bool = True
    """False if the training dataset was deleted, so that the overlap is unknown."""


def training_overlap(services: Services, version: Version, dataset: Dataset) -> TrainingOverlap:
    """Compare a dataset with the training dataset of a version, by digests of their files. Raises StoreUnavailable."""
    try:
        training = services.datasets.get(version.dataset)
        # the same documents in the same order; their labels and ids may differ
        contents = [
            {kind: file.sha256 for kind, file in each.files.items() if not kind.startswith((*KNOWN, "ids"))}
            for each in (training, dataset)
        ]
        if contents[0] != contents[1]:
            return TrainingOverlap(None)
        return TrainingOverlap(services.datasets.open(training.id, version.annotations).labeled)
    except NotFound:
        return TrainingOverlap(None, known=False)


def positions_to_evaluate(documents: Documents, overlap: TrainingOverlap, held_out: bool) -> NDArray[np.int64]:
    """Positions of the labeled documents; with ``held_out`` without the labels that were trained on."""
    labeled = documents.labeled
    if held_out and overlap.labeled is not None:
        labeled = labeled & ~overlap.labeled
    return np.flatnonzero(labeled)


def told(overlap: TrainingOverlap, positions: NDArray[np.int64]) -> int | None:
    """How many of the documents at these positions the version was trained on with their labels.

    None if that is unknown.
    """
    if not overlap.known:
        return None
    return 0 if overlap.labeled is None else int(np.count_nonzero(overlap.labeled[positions]))


def overlap_warnings(overlap: TrainingOverlap, version: Version, positions: NDArray[np.int64]) -> list[str]:
    """Warnings about figures on the documents at these positions."""
    if not overlap.known:
        return [f"whether the model was trained on these labels is unknown: dataset {version.dataset!r} was deleted"]
    if overlap.labeled is None:
        return []
    found = []
    n_labeled = told(overlap, positions) or 0
    n_others = len(positions) - n_labeled
    if n_labeled:
        found.append(_TOLD.format(n_labeled, len(positions)))
    if n_others:
        found.append(f"{n_others} of the {len(positions)} labeled documents were trained on without their labels")
    return found
