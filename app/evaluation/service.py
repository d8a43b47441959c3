"""From a request to an evaluation: on whose documents, by which version, in which form."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fastapi import Request
from starlette.responses import Response

from app.codecs.base import MAX_FAULTS
from app.codecs.dispatch import in_blocks, media_type_of
from app.codecs.documents import invalid_documents
from app.datasets.upload import temporary_file
from app.errors import InvalidRequest
from app.evaluation.evaluator import Measurer
from app.evaluation.page import page_of
from app.evaluation.plot_files import SVG, check_plot, plot_of
from app.evaluation.schemas import EvaluateBody, Evaluation
from app.evaluation.training_overlap import chosen, trained_on, warnings
from app.http.bodies import read_blocks, read_json
from app.http.disconnect import run_until_disconnect
from app.http.negotiation import negotiate
from app.http.route_classes import RESERVATION
from app.predictions.prediction import documents_in, version_and_model
from app.predictions.scoring import Scored, apart, score_posted, score_stored
from app.services import Services
from core.errors import Fault
from core.models.model import Model
from workers.contract import Version
from workers.repositories.datasets import Batch
from workers.repositories.datasets.labels import Classes

JSON, HTML = "application/json", "text/html"


class _Asked(NamedTuple):
    """The documents to evaluate on: of the body, or of a dataset."""

    batches: Iterable[Batch]
    dataset: str | None = None
    held_out: bool = False


class _Form(NamedTuple):
    """Of an answer."""

    media_type: str
    plot: str | None
    """of the evaluation, which alone is wanted"""


async def evaluate(request: Request, services: Services, reference: str) -> Response:
    """How good the version is that ``reference`` stands for now, on the labeled documents of the body or of a dataset.

    Raises NotAcceptable, NotFound, Forbidden, InvalidDocuments, InvalidRequest, LimitExceeded, TooManyRequests, StoreUnavailable,
    UnsupportedMediaType.
    """
    form = _form(request)
    asked = await _read(request, services)
    version, model = await version_and_model(services, reference)
    if asked.dataset is None:
        return await run_until_disconnect(request, services.evaluate_pool, _answer, services, version, model, asked, form)
    return await apart(request, services, _answer, services, version, model, asked, form)


def _form(request: Request) -> _Form:
    """In which form the answer is wanted: a plot has one; raises NotAcceptable, InvalidRequest."""
    plot = request.query_params.get("plot")
    media_type = negotiate(request, (JSON, HTML, SVG) if plot is None else (SVG,))
    if media_type == SVG:
        check_plot(plot)
    return _Form(media_type, plot)


async def _read(request: Request, services: Services) -> _Asked:
    """What is asked for, by a caller who may: a dataset is for those who may read it, documents are for those who may predict."""
    bounds = services.settings.prediction_bounds
    if media_type_of(request.headers) != JSON:
        services.access.authorize(request.scope, "predictions")
        return _Asked(documents_in(await read_blocks(request, bounds), request.headers, bounds, request.scope[RESERVATION].grow))
    body = await read_json(request, services, EvaluateBody)
    documents = bytes(body.documents)
    posted = documents not in (b"", b"null")
    if posted == (body.dataset is not None):
        raise InvalidRequest("dataset", "give either dataset or documents")
    if posted and body.held_out:
        raise InvalidRequest("held_out", "is for a dataset; of documents in the body nobody knows whether they were trained on")
    services.access.authorize(request.scope, "predictions" if posted else "datasets")
    text = b'{"documents":' + documents + b"}"
    return _Asked(documents_in(in_blocks(text), {"content-type": JSON}, bounds), body.dataset, body.held_out)


def _answer(services: Services, version: Version, model: Model, asked: _Asked, form: _Form) -> Response:
    with temporary_file(services.store) as file:
        measurer = Measurer(model, file, services.settings.max_ranked_scores)
        if asked.dataset is None:
            batches = _checked(asked.batches, services.settings.max_classes)
            evaluation = _measured(measurer, score_posted(model, batches)).evaluation(version, None, None, [])
        else:
            evaluation = _on_dataset(services, version, model, asked, measurer)
    if form.plot is not None:
        return plot_of(evaluation, form.plot)
    if form.media_type == HTML:
        return page_of(evaluation)
    return Response(evaluation.model_dump_json(), media_type=JSON)


def _on_dataset(services: Services, version: Version, model: Model, asked: _Asked, measurer: Measurer) -> Evaluation:
    assert asked.dataset is not None
    dataset = services.datasets.get(asked.dataset)
    documents, trained = services.datasets.open(dataset.id), trained_on(services, version, dataset)
    if asked.held_out and not trained.known:
        raise InvalidRequest("held_out", f"nobody can tell any more: dataset {version.dataset!r}, which the model was trained on, is gone")
    positions = chosen(documents, trained, asked.held_out)
    _measured(measurer, score_stored(model, documents, positions))
    return measurer.evaluation(version, dataset.id, dataset.n_documents, warnings(trained, version, positions))


def _measured(measurer: Measurer, batches: Iterable[Scored]) -> Measurer:
    for scored in batches:
        measurer.add(scored)
    return measurer


def _checked(batches: Iterable[Batch], most: int) -> Iterator[Batch]:
    """The batches, their labels checked as those of a dataset are; raises InvalidDocuments, LimitExceeded."""
    classes, position = Classes(most), 0
    for batch in batches:
        faults = classes.faults(batch.labels, MAX_FAULTS)
        if faults:
            ids = batch.ids or [None] * batch.rows.n_rows
            raise invalid_documents([Fault(ids[row] or str(position + row), "label", detail) for row, detail in faults])
        classes.encode(batch.labels)
        position += batch.rows.n_rows
        yield batch
