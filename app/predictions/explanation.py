"""Why a model says what it says: the weights of its classes, and the contributions of which the scores of documents are sums."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import msgspec
import numpy as np
from fastapi import Request
from msgspec import Meta
from numpy.typing import NDArray
from pydantic import Field
from starlette.responses import Response

from app.codecs.dispatch import in_blocks
from app.errors import InvalidRequest
from app.http.bodies import in_thread, read_json
from app.http.schemas import Schema
from app.predictions.prediction import documents_in, version_and_model
from app.predictions.scoring import Unseen, score_posted
from app.services import Services
from core.models.explanation import Explanation, explain_score, top_weights
from core.models.kernel import KernelModel
from core.models.model import Model, Weights
from core.one_vs_rest import column_of, positives_of
from workers.contract import Label, Version
from workers.errors import NotFound
from workers.repositories.datasets import Batch

MAX_DOCUMENTS = 100
"""explained at once: an explanation is for a person to read"""
_NAMED_CLASSES = 20
_ENCODER = msgspec.json.Encoder()

Item = dict[str, Any]
Named = Callable[[int], Item]
"""How an item of a model is shown to people: a feature, or a training document."""


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be explained; without documents, the model alone."""

    documents: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    n: Annotated[int, Meta(ge=1, le=100)] = 10
    """How many items are shown of each list."""
    class_: Label | None = msgspec.field(default=None, name="class")
    """Explain the score of this class; by default that of each document's label."""


class Feature(Schema):
    """A feature of a linear model."""

    feature: int
    """its number, as vectors have it"""
    name: str | None = None
    """of named features and of text, where it is the term; else left out"""
    weight: float


class Kept(Schema):
    """A training document that a kernel model keeps."""

    position: int | None
    """in the dataset of the training; null of models from when that was not stored"""
    id: str | None
    """null when the dataset of the training is no more"""
    weight: float


class FeatureTerm(Feature):
    """What a feature adds to a score."""

    value: float
    """of the document"""
    contribution: float
    """value times weight"""


class KeptTerm(Kept):
    """What a training document adds to a score."""

    value: float
    """of the kernel function of the two documents: how near they are"""
    contribution: float
    """value times weight"""


class ClassWeights(Schema):
    """What speaks for a class and what against it, the heaviest first."""

    class_: Label = Field(alias="class")
    bias: float
    for_: list[Feature] | list[Kept] = Field(alias="for")
    against: list[Feature] | list[Kept]


class ExplainedDocument(Schema):
    """A score as a sum: bias, contributions and rest."""

    id: str
    label: Label
    class_: Label = Field(alias="class")
    """whose score this is; of two classes always the second"""
    score: float
    bias: float
    contributions: list[FeatureTerm] | list[KeptTerm]
    """of features by size, of training documents the nearest first"""
    rest: float
    """what all that are not shown add up to"""


class ExplanationOut(Schema):
    """Why a model says what it says."""

    model: str
    version: int
    family: str = Field(examples=["linear", "kernel"])
    """of the model: linear has weights of features, kernel of training documents that it keeps"""
    classes: list[Label]
    weights: list[ClassWeights]
    """of each column of scores: of two classes the second's, of more every class's"""
    documents: list[ExplainedDocument]
    warnings: list[str]


async def explain(request: Request, services: Services, reference: str) -> Response:
    """The weights of a version, and the contributions to the scores of the documents in the body if there are any.

    Raises InvalidRequest, InvalidDocuments, LimitExceeded, NotFound, TooManyRequests, UnsupportedMediaType.
    """
    body = await read_json(request, services, ExplainBody, ExplainBody())
    version, model = await version_and_model(services, reference)
    return await in_thread(services.predict_pool, _answer, services, version, model, body)


def _answer(services: Services, version: Version, model: Model, body: ExplainBody) -> Response:
    """Nothing is shown of an item before all are known, so that the ids of training documents are looked for once."""
    if body.class_ is not None and body.class_ not in version.classes:
        raise InvalidRequest("class", f"the model has no such class; it has {', '.join(map(str, version.classes[:_NAMED_CLASSES]))}")
    columns = [version.classes[class_index] for class_index in positives_of(len(version.classes))]
    weights = [top_weights(model.weights_of(column), body.n) for column in range(len(columns))]
    unseen = Unseen()
    documents = list(_documents(services, version, model, body, unseen))
    used = [part.items for pair in weights for part in pair] + [found.contributions.items for _, _, _, found in documents]
    named = _named(services, version, model, np.unique(np.concatenate(used)))
    content = {
        "model": version.name,
        "version": version.number,
        "family": model.weight_facts()["family"],
        "classes": version.classes,
        "weights": [
            {"class": label, "bias": raising.intercept, "for": _shown(raising, named), "against": _shown(lowering, named)}
            for label, (raising, lowering) in zip(columns, weights, strict=True)
        ],
        "documents": [
            {"id": id, "label": label, "class": columns[column], **_shown_document(found, named)} for id, label, column, found in documents
        ],
        "warnings": unseen.warnings(),
    }
    return Response(_ENCODER.encode(content), media_type="application/json")


def _documents(
    services: Services, version: Version, model: Model, body: ExplainBody, unseen: Unseen
) -> Iterator[tuple[str, Label, int, Explanation]]:
    """The id of each document, its label, the column of its scores that is explained, and why that is what it is."""
    batches = list(_batches(services, body))
    for batch, scored in zip(batches, score_posted(model, batches), strict=True):
        unseen.count(scored)
        for place, class_index in enumerate(model.labels_of(scored.scores).tolist()):
            wanted = class_index if body.class_ is None else version.classes.index(body.class_)
            column = column_of(wanted, model.n_columns)
            id = batch.ids[place] if batch.ids else None
            row = scored.rows.between(place, place + 1)
            yield id or str(scored.positions[place]), version.classes[class_index], column, explain_score(model, row, column, body.n)


def _batches(services: Services, body: ExplainBody) -> Iterable[Batch]:
    """The documents of a body, if there are any."""
    if bytes(body.documents) in (b"", b"null"):
        return []
    text = b'{"documents":' + bytes(body.documents) + b"}"
    bounds = services.settings.prediction_bounds
    bounds = replace(bounds, documents=min(MAX_DOCUMENTS, bounds.documents))
    return documents_in(list(in_blocks(text)), {"content-type": "application/json"}, bounds)


def _shown(found: Weights, named: Named) -> list[Item]:
    return [{**named(item), "weight": weight} for item, weight in zip(found.items.tolist(), found.weights.tolist(), strict=True)]


def _shown_document(found: Explanation, named: Named) -> Item:
    contributions = found.contributions
    columns = (contributions.items, contributions.weights, contributions.values, contributions.amounts)
    shown = [
        {**named(item), "weight": weight, "value": value, "contribution": contribution}
        for item, weight, value, contribution in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return {"score": found.score, "bias": contributions.intercept, "contributions": shown, "rest": found.rest}


def _named(services: Services, version: Version, model: Model, items: NDArray[np.int64]) -> Named:
    """How these items of a model are shown: the one place that knows names of features and ids of training documents. ``items`` ascend."""
    if not isinstance(model, KernelModel):
        names = model.vocabulary.named(items)
        if names is None:
            return lambda item: {"feature": item}
        called = dict(zip(items.tolist(), names, strict=True))
        return lambda item: {"feature": item, "name": called[item]}
    if model.positions is None:
        return lambda item: {"position": None, "id": None}
    positions = dict(zip(items.tolist(), model.positions[items].tolist(), strict=True))
    wanted = sorted(positions.values())
    try:
        ids = dict(zip(wanted, services.datasets.ids(version.dataset).at(wanted), strict=True))
    except NotFound:
        ids = {}
    return lambda item: {"position": positions[item], "id": ids.get(positions[item])}
