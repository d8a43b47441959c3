"""Active learning: which documents of a dataset to label next, by a model and a strategy."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from fastapi import Request
from msgspec import Meta
from numpy.typing import NDArray
from pydantic import Field
from starlette.responses import Response

from app.codecs.documents import DrawWord
from app.http.bodies import read_json
from app.http.schemas import Schema
from app.predictions.prediction import load_model
from app.predictions.schemas import LabeledDocument
from app.predictions.scoring import UnseenCounter, rows_at, run_scoring, score_stored
from app.services import Services
from core.documents.drawn import Draw
from core.evaluation.active_learning import POOL, SmallestMargins, TopTwo, comparable, representatives, top_two
from core.models.model import Model
from core.one_vs_rest import column_of
from workers.contract import Label, Version
from workers.repositories.datasets import Documents

_ENCODER = msgspec.json.Encoder()

Positions = NDArray[np.int64]
Strategy = Literal["diverse", "uncertain", "random"]
"""Query strategy of active learning."""


class SuggestBody(msgspec.Struct, forbid_unknown_fields=True):
    """A query for unlabeled documents of a dataset."""

    dataset: str
    n: Annotated[int, Meta(ge=1, le=1000)] = 10
    strategy: Strategy = "diverse"
    """Strategy. uncertain: the documents of least margin. diverse: representatives of three times as many of these. random: any."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    """Seed of the random strategy; equal seeds give equal documents."""


class Suggestion(LabeledDocument):
    """A document to label, with the label that the model gives to it."""

    rival: Label
    """Likeliest class beside ``label``."""
    drawn: DrawWord
    """How it was drawn, which the service remembers for its label: at random, or chosen by the model."""
    margin: float
    """Difference between the likeliest class and the next one."""


class Suggestions(Schema):
    """Documents to label next, the most useful first."""

    model: str
    version: int
    dataset: str
    strategy: Strategy
    n_unlabeled: int
    """Number of documents of the dataset that have no label."""
    margin_of: str = Field(examples=["probabilities", "scores"])
    """Quantity whose differences the margins are: scores if the model is not calibrated."""
    suggestions: list[Suggestion]
    warnings: list[str]


async def suggest(request: Request, services: Services, reference: str) -> Response:
    """Documents to label next, by the version to which ``reference`` refers now.

    Raises InvalidRequest, NotFound, TooManyRequests, UnsupportedMediaType.
    """
    body = await read_json(request, services, SuggestBody)
    version, model = await load_model(services, reference)
    return await run_scoring(request, services, _answer, services, version, model, body)


def _answer(services: Services, version: Version, model: Model, body: SuggestBody) -> Response:
    documents = services.datasets.open(body.dataset)
    unlabeled = np.flatnonzero(documents.class_indices < 0)
    unseen, warnings = UnseenCounter(), [] if len(unlabeled) else ["all documents of the dataset have labels"]
    if body.strategy == "random":
        chosen = np.random.default_rng(body.seed).choice(unlabeled, min(body.n, len(unlabeled)), replace=False)
    else:
        diverse = body.strategy == "diverse"
        pool = _least_certain(model, documents, unlabeled, body.n * POOL if diverse else body.n)
        chosen = _representative(model, documents, pool, body.n, warnings) if diverse else pool
    drawn = dict.fromkeys(chosen.tolist(), Draw.RANDOM if body.strategy == "random" else Draw.CHOSEN)
    suggestions = _suggestions(version, model, documents, drawn, unseen)
    services.datasets.record_suggested(body.dataset, drawn)
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


def _least_certain(model: Model, documents: Documents, unlabeled: Positions, most: int) -> Positions:
    """Positions of the documents of least margin, the least certain first."""
    pool = SmallestMargins(most)
    for scored in score_stored(model, documents, unlabeled):
        pool.add(scored.positions, _top_two(model, scored.scores).margins)
    return pool.positions


def _representative(model: Model, documents: Documents, pool: Positions, n: int, warnings: list[str]) -> Positions:
    """Representatives of the pool; the least certain documents where the documents are too long to be compared."""
    if len(pool) <= n:
        return pool
    compared = pool[: comparable(documents.rows.indptr, pool)]
    if len(compared) <= n:
        warnings.append("the documents are too long to be compared with each other: these are the least certain ones")
        return pool[:n]
    ascending = np.argsort(compared)
    rows = rows_at(model, documents, compared[ascending]).taken(np.argsort(ascending))
    return compared[representatives(rows, n)]


def _suggestions(version: Version, model: Model, documents: Documents, drawn: Mapping[int, Draw], unseen: UnseenCounter) -> list[dict[str, Any]]:
    """The suggestions for the documents at these positions, in this order, each with its draw."""
    ascending = np.array(sorted(drawn), np.int64)
    ids = documents.ids.at(ascending.tolist())
    found: dict[int, dict[str, Any]] = {}
    for scored in score_stored(model, documents, ascending):
        unseen.count(scored)
        probabilities = model.probabilities(scored.scores)
        first, second, margins = _top_two(model, scored.scores)
        labels = model.labels_of(scored.scores)
        rivals = np.where(first == labels, second, first)
        for index, (position, label, rival) in enumerate(zip(scored.positions.tolist(), labels.tolist(), rivals.tolist(), strict=True)):
            found[position] = {
                "id": ids[len(found)],
                "label": version.classes[label],
                "score": float(scored.scores[index, column_of(label, model.n_columns)]),
                "probability": None if probabilities is None else float(probabilities[index, label]),
                "rival": version.classes[rival],
                "drawn": drawn[position].word,
                "margin": float(margins[index]),
            }
    return [found[position] for position in drawn]
