"""Which documents of a dataset to label next: from a model and a strategy to an ordered list."""

from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from fastapi import Request
from msgspec import Meta
from numpy.typing import NDArray
from pydantic import Field
from starlette.responses import Response

from app.http.bodies import read_json
from app.http.schemas import Schema
from app.predictions.prediction import version_and_model
from app.predictions.schemas import LabeledDocument
from app.predictions.scoring import Unseen, apart, rows_at, score_stored
from app.services import Services
from core.evaluation.active_learning import POOL, SmallestMargins, TopTwo, comparable, representatives, top_two
from core.models.model import Model
from core.one_vs_rest import column_of
from workers.contract import Label, Version
from workers.repositories.datasets import Documents

_ENCODER = msgspec.json.Encoder()

Positions = NDArray[np.int64]
Strategy = Literal["diverse", "uncertain", "random"]
"""how documents are chosen"""


class SuggestBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked for: documents of a dataset that have no label in it."""

    dataset: str
    n: Annotated[int, Meta(ge=1, le=1000)] = 10
    strategy: Strategy = "diverse"
    """uncertain: those that the model is least sure of; diverse: of three times as many of these, those that stand for all; random: any"""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    """of the random strategy: the same seed gives the same documents"""


class Suggestion(LabeledDocument):
    """A document to label, and what the model makes of it so far."""

    rival: Label
    """the likeliest class beside ``label``"""
    margin: float
    """what the likeliest class is ahead of the next one"""


class Suggestions(Schema):
    """Documents to label next, the one of most use first."""

    model: str
    version: int
    dataset: str
    strategy: Strategy
    n_unlabeled: int
    """documents of the dataset that have no label"""
    margin_of: str = Field(examples=["probabilities", "scores"])
    """what margins are differences of: scores where the model was not calibrated"""
    suggestions: list[Suggestion]
    warnings: list[str]


async def suggest(request: Request, services: Services, reference: str) -> Response:
    """Documents to label next, by the version that ``reference`` stands for now.

    Raises InvalidRequest, NotFound, TooManyRequests, UnsupportedMediaType.
    """
    body = await read_json(request, services, SuggestBody)
    version, model = await version_and_model(services, reference)
    return await apart(request, services, _answer, services, version, model, body)


def _answer(services: Services, version: Version, model: Model, body: SuggestBody) -> Response:
    documents = services.datasets.open(body.dataset)
    unlabeled = np.flatnonzero(documents.class_indices < 0)
    unseen, warnings = Unseen(), [] if len(unlabeled) else ["all documents of the dataset have labels"]
    if body.strategy == "random":
        chosen = np.random.default_rng(body.seed).choice(unlabeled, min(body.n, len(unlabeled)), replace=False)
    else:
        diverse = body.strategy == "diverse"
        pool = _least_sure(model, documents, unlabeled, body.n * POOL if diverse else body.n)
        chosen = _standing_for_all(model, documents, pool, body.n, warnings) if diverse else pool
    suggestions = _suggestions(version, model, documents, chosen, unseen)
    content = {
        "model": version.name,
        "version": version.number,
        "dataset": body.dataset,
        "strategy": body.strategy,
        "n_unlabeled": len(unlabeled),
        "margin_of": "scores" if model.calibration is None else "probabilities",
        "suggestions": suggestions,
        "warnings": [*unseen.warnings(), *warnings],
    }
    return Response(_ENCODER.encode(content), media_type="application/json")


def _top_two(model: Model, scores: NDArray[np.float64]) -> TopTwo:
    probabilities = model.probabilities(scores)
    return top_two(scores if probabilities is None else probabilities)


def _least_sure(model: Model, documents: Documents, unlabeled: Positions, most: int) -> Positions:
    """The positions of the documents of least margin, the least sure first."""
    pool = SmallestMargins(most)
    for scored in score_stored(model, documents, unlabeled):
        pool.add(scored.positions, _top_two(model, scored.scores).margins)
    return pool.positions


def _standing_for_all(model: Model, documents: Documents, pool: Positions, n: int, warnings: list[str]) -> Positions:
    """Those of the pool that stand for all of it; the least sure ones where so many are too long to be compared."""
    if len(pool) <= n:
        return pool
    compared = pool[: comparable(documents.rows.indptr, pool)]
    if len(compared) <= n:
        warnings.append("the documents are too long to be compared with each other: these are the least sure ones")
        return pool[:n]
    ascending = np.argsort(compared)
    rows = rows_at(model, documents, compared[ascending]).taken(np.argsort(ascending))
    return compared[representatives(rows, n)]


def _suggestions(version: Version, model: Model, documents: Documents, chosen: Positions, unseen: Unseen) -> list[dict[str, Any]]:
    """What is to be said of the documents at these positions, in their order."""
    ascending = np.sort(chosen)
    ids = documents.ids.at(ascending.tolist())
    found: dict[int, dict[str, Any]] = {}
    for scored in score_stored(model, documents, ascending):
        unseen.count(scored)
        probabilities = model.probabilities(scored.scores)
        first, second, margins = _top_two(model, scored.scores)
        labels = model.labels_of(scored.scores)
        rivals = np.where(first == labels, second, first)
        for place, (position, label, rival) in enumerate(zip(scored.positions.tolist(), labels.tolist(), rivals.tolist(), strict=True)):
            found[position] = {
                "id": ids[len(found)],
                "label": version.classes[label],
                "score": float(scored.scores[place, column_of(label, model.n_columns)]),
                "probability": None if probabilities is None else float(probabilities[place, label]),
                "rival": version.classes[rival],
                "margin": float(margins[place]),
            }
    return [found[position] for position in chosen.tolist()]
