"""Explanations: the largest weights of a model, and the score of a document as a sum of contributions."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.responses import Response

from app.codecs.dispatch import check_unread, document_blocks
from app.codecs.json.struct import is_given
from app.errors import InvalidRequest
from app.http.answers import json_answer
from app.http.requests import in_thread, read_json
from app.predictions.schemas import ExplainBody
from app.predictions.scoring import UnseenCounter, score_posted
from app.predictions.service import Loaded, decode_documents, load_model
from app.services.wiring import Services
from core.documents.kinds import TextRows
from core.documents.part_columns import PartColumns
from core.models.explanation import Explanation, explain_score, term_spans, top_weights, weights_with_meaning
from core.models.kernel import KernelModel
from core.models.model import Model, Weights
from core.one_vs_rest import column_of, positives_of
from storage.errors import NotFound, StoreUnavailable
from storage.records import Label, Version
from storage.repositories.datasets import Batch

MAX_DOCUMENTS = 100
"""Documents that one request may have explained: explanations are for people to read."""
_LISTED_CLASSES = 20

Item = dict[str, Any]
Describe = Callable[[int], Item]
"""Describes an item of a model for people: a feature, or a training document."""


class _Explained(NamedTuple):
    """A document with its explanation."""

    id: str
    label: Label
    column: int
    """Column of the score that is explained."""
    explanation: Explanation
    text: str | None
    """Text of the document, None if it is not text alone."""


async def explain(request: Request, services: Services, reference: str) -> Response:
    """The largest weights of a version, and the contributions to the scores of the documents in the body.

    Raises InvalidRequest, InvalidDocuments, LimitExceeded, NotFound, TooManyRequests, UnsupportedMediaType.
    """
    body = await read_json(request, services, ExplainBody, ExplainBody())
    loaded = await load_model(services, reference)
    # ids of training documents are read from the store
    pool = services.pools.load if isinstance(loaded.model, KernelModel) else services.pools.predicting(loaded.model)
    batches: Iterable[Batch] = []
    if is_given(body.documents):
        bounds = services.settings.prediction_bounds
        bounds = replace(bounds, documents=min(MAX_DOCUMENTS, bounds.documents))
        blocks, query = document_blocks(body.documents), request.query_params
        batches = decode_documents(blocks, {"content-type": "application/json"}, bounds, query=query)
    else:
        check_unread(request.query_params, "it has none")
    return await in_thread(pool, _answer, services, loaded, body, batches)


def _answer(services: Services, loaded: Loaded, body: ExplainBody, batches: Iterable[Batch]) -> Response:
    """All explanations are computed before any item is described, so that ids of training documents are read once."""
    version, model, _ = loaded
    if body.class_ is not None and body.class_ not in version.classes:
        raise InvalidRequest(
            "class", f"the model has no such class; it has {', '.join(map(str, version.classes[:_LISTED_CLASSES]))}"
        )
    positives = range(model.n_columns) if model.several else positives_of(len(version.classes))
    columns = [version.classes[class_index] for class_index in positives]
    weights = [top_weights(weights_with_meaning(model, column), body.n) for column in range(len(columns))]
    unseen = UnseenCounter()
    documents = list(_documents(version, model, body, list(batches), unseen))
    used = [part.items for pair in weights for part in pair] + [
        each.explanation.contributions.items for each in documents
    ]
    describe = _describer(services, version, model, np.unique(np.concatenate(used)))
    content = {
        "model": version.name,
        "version": version.number,
        "family": model.weight_facts()["family"],
        "classes": version.classes,
        "weights": [
            {
                "class": label,
                "bias": raising.intercept,
                "for": _weights(raising, describe),
                "against": _weights(lowering, describe),
            }
            for label, (raising, lowering) in zip(columns, weights, strict=True)
        ],
        "documents": [
            {"id": each.id, "label": each.label, "class": columns[each.column], **_explained_document(each, describe)}
            for each in documents
        ],
        "warnings": [*loaded.warnings, *unseen.warnings()],
    }
    return loaded.marked(json_answer(content))


def _documents(
    version: Version, model: Model, body: ExplainBody, batches: list[Batch], unseen: UnseenCounter
) -> Iterator[_Explained]:
    for batch, scored in zip(batches, score_posted(model, batches), strict=True):
        unseen.count(scored)
        texts = list(batch.rows) if isinstance(batch.rows, TextRows) else [None] * batch.rows.n_rows
        likeliest = scored.scores.argmax(axis=1) if model.several else model.labels_of(scored.scores)
        for index, class_index in enumerate(likeliest.tolist()):
            wanted = class_index if body.class_ is None else version.classes.index(body.class_)
            column = column_of(wanted, model.n_columns)
            id = batch.ids[index] if batch.ids else None
            explanation = explain_score(model, scored.rows.between(index, index + 1), column, body.n)
            yield _Explained(
                id or str(scored.positions[index]), version.classes[class_index], column, explanation, texts[index]
            )


def _weights(found: Weights, describe: Describe) -> list[Item]:
    return [
        {**describe(item), "weight": weight}
        for item, weight in zip(found.items.tolist(), found.weights.tolist(), strict=True)
    ]


def _explained_document(document: _Explained, describe: Describe) -> Item:
    found = document.explanation
    contributions = found.contributions
    columns = (contributions.items, contributions.weights, contributions.values, contributions.amounts)
    listed = [
        {**describe(item), "weight": weight, "value": value, "contribution": contribution}
        for item, weight, value, contribution in zip(*(column.tolist() for column in columns), strict=True)
    ]
    if document.text is not None and all("name" in item for item in listed):
        for item, spans in zip(listed, term_spans(document.text, [item["name"] for item in listed]), strict=True):
            item["spans"] = spans
    parts = {} if found.parts is None else {"parts": found.parts}
    return {"score": found.score, "bias": contributions.intercept, "contributions": listed, "rest": found.rest, **parts}


def _describer(services: Services, version: Version, model: Model, items: NDArray[np.int64]) -> Describe:
    """A function that describes these items of a model, by names of features or ids of training documents.

    ``items`` ascend.
    """
    if not isinstance(model, KernelModel):
        names = model.vocabulary.named(items)
        if names is None:
            return lambda item: {"feature": item}
        described: dict[int, Item] = {
            item: {"feature": item, "name": name} for item, name in zip(items.tolist(), names, strict=True)
        }
        if isinstance(model.vocabulary, PartColumns):
            for item, place in zip(items.tolist(), model.vocabulary.places_of(items).tolist(), strict=True):
                described[item]["part"] = model.vocabulary.names[place]
        return described.__getitem__
    if model.positions is None:
        return lambda item: {"position": None, "id": None}
    positions = dict(zip(items.tolist(), model.positions[items].tolist(), strict=True))
    try:
        ids = services.datasets.ids(version.dataset).by_position(positions.values())
    except (NotFound, StoreUnavailable):
        ids = {}
    return lambda item: {"position": positions[item], "id": ids.get(positions[item])}
