"""Active learning: which documents of a dataset to label next, by a model and a strategy."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request
from starlette.responses import Response

from app.datasets.documents import stored_documents
from app.datasets.shares import Part, claim, part_of
from app.errors import InvalidRequest
from app.http.answers import json_answer
from app.http.requests import read_json
from app.predictions.schemas import Strategy, SuggestBody
from app.predictions.scoring import (
    DatasetScores,
    UnseenCounter,
    rows_at,
    run_scoring,
    score_stored,
    scores_of_dataset,
    two_likeliest,
)
from app.predictions.service import load_model
from app.predictions.voting import Positions, VoterQuery, rates_of, with_votes
from app.services.wiring import Services
from core.documents.drawn import Draw
from core.evaluation.active_learning import (
    LABELS_A_CLASS,
    POOL,
    Balanced,
    BalancedMargins,
    comparable,
    has_few_labels,
    interleaved,
    random_positions,
    representatives,
)
from core.models.model import Model
from core.numerics.binomial import labels_needed
from core.one_vs_rest import column_of
from storage.records import Version
from storage.repositories.datasets import Documents

_BLOCK = 1 << 14
"""Documents among which the least certain ones are looked for at a time."""


class _Source(NamedTuple):
    """A dataset, with the labels that people gave, and the version that chooses documents to label next."""

    services: Services
    version: Version
    model: Model
    dataset: str
    documents: Documents
    part: Part
    """What the person has to label."""


async def suggest(request: Request, services: Services, reference: str) -> Response:
    """Documents to label next, by the version to which ``reference`` refers now.

    Raises InvalidRequest, NotFound, TooManyRequests, UnsupportedMediaType.
    """
    body = await read_json(request, services, SuggestBody)
    if body.price is not None and body.for_ is None:
        raise InvalidRequest("price", "is that of a voter's answers: name the voter by for")
    version, model, _ = await load_model(services, reference)
    return await run_scoring(request, services, _answer, services, version, model, body)


def _answer(services: Services, version: Version, model: Model, body: SuggestBody) -> Response:
    part = part_of(services, body.dataset, body.share, body.by)
    documents = services.datasets.open_annotated(body.dataset, part.answers)
    source = _Source(services, version, model, body.dataset, documents, part)
    asking = None if body.for_ is None else VoterQuery(services, body, rates_of(services, version), documents)
    answered = [position for position, answer in part.answers.items() if answer.answered_by]
    unlabeled = np.setdiff1d(np.flatnonzero(~documents.labeled & ~part.of_others), answered, assume_unique=True)
    unseen, warnings = UnseenCounter(), [] if len(unlabeled) else ["all documents of the dataset have labels"]
    ignorant = ignorance(version)
    random = bool(ignorant) or body.strategy == "random"
    if asking is None:
        drawn = _claimed(source, unlabeled, body, 1.0 if random else body.random, warnings)
        worth = None
    else:
        known = _known(source)
        drawn = asking.drawn(
            known, unlabeled, random, lambda pool, n: _representative(model, documents, pool, n, warnings)
        )
        worth = asking.report(known, unlabeled, drawn)
    suggestions = _suggestions(version, model, documents, drawn, unseen)
    if "document" in body.include:
        found = stored_documents(documents, np.array(list(drawn), np.int64), services.datasets.fields(body.dataset))
        for suggestion, fields in zip(suggestions, found.values(), strict=True):
            suggestion["document"] = {
                name: field for name, field in fields.items() if name not in ("label", "labels", "drawn")
            }
    if asking is None:
        services.datasets.record_suggested(body.dataset, drawn)
    content = {
        "model": version.name,
        "version": version.number,
        "dataset": body.dataset,
        "strategy": body.strategy,
        "n_unlabeled": len(unlabeled),
        "margin_of": "scores" if model.calibration is None else "probabilities",
        "suggestions": suggestions,
        "warnings": [*([ignorant] if ignorant else []), *unseen.warnings(), *dict.fromkeys(warnings)],
    }
    content |= {} if worth is None else {"asking": worth}
    return json_answer(content)


def _claimed(
    source: _Source, unlabeled: Positions, body: SuggestBody, share: float, warnings: list[str]
) -> dict[int, Draw]:
    """Positions of at most ``body.n`` documents that are drawn and claimed, in order, and the draw of each; ``share``
    of them are random. Where others were faster, others are drawn in their place.

    Random ones are drawn first, from all that have no label: what the model would choose may be among them, as in any
    random sample. Of those that everybody answers, which are a random sample, too, all get the same ones first.
    """
    kept: dict[int, Draw] = {}
    while True:
        n = min(body.n - len(kept), len(unlabeled))
        random = random_positions(unlabeled, n, share, body.seed)
        shared = source.part.overlap[np.isin(source.part.overlap, unlabeled)][: len(random)]
        random = np.concatenate([shared, np.setdiff1d(random, shared, assume_unique=True)])[: len(random)]
        others = np.setdiff1d(unlabeled, random, assume_unique=True)
        chosen = _chosen(source, others, body.strategy, n - len(random), warnings)
        draws = dict.fromkeys(random.tolist(), Draw.RANDOM)
        drawn = {each: draws.get(each, Draw.CHOSEN) for each in interleaved(random, chosen).tolist()}
        lost = claim(source.services, body.dataset, source.part, drawn.keys(), body.by, body.claim)
        kept |= {position: draw for position, draw in drawn.items() if position not in lost}
        if not lost:
            return kept
        unlabeled = np.setdiff1d(unlabeled, [*drawn], assume_unique=True)


def _chosen(source: _Source, candidates: Positions, strategy: Strategy, n: int, warnings: list[str]) -> Positions:
    """Positions of ``n`` of the candidates that the model chooses, of the classes that it predicts."""
    if not n:
        return np.zeros(0, np.int64)
    known = _known(source)
    pool = BalancedMargins(n * POOL if strategy == "diverse" else n, several=source.model.several)
    for start in range(0, len(candidates), _BLOCK):
        block = candidates[start : start + _BLOCK]
        pool.add(block, known.predicted[block], known.margins[block])
    if strategy == "diverse":
        return _representative(source.model, source.documents, pool.balanced, n, warnings)
    return pool.balanced.positions


def _known(source: _Source) -> DatasetScores:
    """The predictions of the dataset, by the votes as well where voters differ."""
    services, version, model, dataset, documents, _ = source
    known = scores_of_dataset(services, version, model, dataset, documents)
    return with_votes(services, version, known, model, documents)


def _representative(model: Model, documents: Documents, pool: Balanced, n: int, warnings: list[str]) -> Positions:
    """Positions of representatives of the pool; of the least certain documents where the documents are too long to be
    compared.
    """
    if len(pool.positions) <= n:
        return pool.positions
    compared = pool.taken(comparable(documents.rows.indptr, pool.positions))
    if len(compared.positions) <= n:
        warnings.append("the documents are too long to be compared with each other: these are the least certain ones")
        return pool.taken(n).positions
    ascending = np.argsort(compared.positions)
    rows = rows_at(model, documents, compared.positions[ascending]).taken(np.argsort(ascending))
    return compared.positions[representatives(rows, n, compared.classes)]


def _suggestions(
    version: Version, model: Model, documents: Documents, drawn: Mapping[int, Draw], unseen: UnseenCounter
) -> list[dict[str, Any]]:
    """The suggestions for the documents at these positions, in this order, each with its draw."""
    ascending = np.array(sorted(drawn), np.int64)
    ids = documents.ids.by_position(drawn)
    differ = np.zeros(len(ascending), bool) if documents.votes is None else documents.votes.taken(ascending).differ
    differing = {*ascending[differ].tolist()}
    found: dict[int, dict[str, Any]] = {}
    for scored in score_stored(model, documents, ascending):
        unseen.count(scored)
        probabilities = model.probabilities(scored.scores)
        first, second, margins = two_likeliest(model, scored.scores, probabilities)
        labels = first if model.several else model.labels_of(scored.scores, probabilities)
        rivals = np.where(first == labels, second, first)
        for index, (position, label, rival) in enumerate(
            zip(scored.positions.tolist(), labels.tolist(), rivals.tolist(), strict=True)
        ):
            found[position] = {
                "id": ids[position],
                "label": version.classes[label],
                "score": float(scored.scores[index, column_of(label, model.n_columns)]),
                "probability": None if probabilities is None else float(probabilities[index, label]),
                "rival": version.classes[rival],
                "drawn": drawn[position].word,
                "margin": float(margins[index]),
                "voters_differ": position in differing,
            }
    return [found[position] for position in drawn]


def ignorance(version: Version) -> str | None:
    """A sentence about a version that knows too little, so that all that is suggested is random.

    None of one that may choose.
    """
    held_out, n_classes = version.held_out, len(version.classes)
    if version.confidence == "none":
        said = "the model knows no more than chance would, so all of these documents are random ones"
        if held_out is None:
            return said
        labels, right, by_chance = held_out.labels, held_out.right, held_out.by_chance
        said += f": of {labels} labels left out it is right on {right}, and by chance on some {by_chance * labels:.0f}"
        # a model that is no better than chance may still learn: assume an accuracy halfway between chance and 1
        further = right / labels if right > by_chance * labels else (1 + by_chance) / 2
        needed = labels_needed(labels, right, by_chance, further)
        if needed is None or needed <= labels:
            return said
        return (
            f"{said}; if it is right on {further:.0%} of those to come, it takes some {needed} labels in all to "
            "know that this is not chance"
        )
    if held_out is None or not has_few_labels(held_out.labels, n_classes):
        return None
    return (
        f"{held_out.labels} labels left out say too little of {n_classes} classes, so all of these documents "
        f"are random ones: from {LABELS_A_CLASS * n_classes} labels left out on the model chooses documents, too"
    )
