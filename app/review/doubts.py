"""Doubts: labels that a model, when it is not told them, finds less likely than others; and documents that are nearly
the same with other labels.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.responses import Response

from app.datasets.documents import stored_documents
from app.errors import InvalidRequest
from app.http.answers import json_answer
from app.http.requests import read_json
from app.predictions.scoring import rows_at, run_scoring
from app.predictions.service import load_model
from app.predictions.voting import rates_of
from app.review.schemas import DoubtsBody
from app.services.wiring import Services
from core.documents.label_sets import LabelSets, label_order, places_among
from core.evaluation.active_learning import comparable, similarities
from core.evaluation.measures import doubtful
from core.evaluation.voting import VoterRates
from core.models.model import Model
from storage.errors import Conflict
from storage.records import Label, Version
from storage.repositories.datasets import Documents
from storage.repositories.models import LeftOut

_MOST_COMPARED = 3_000
"""Labeled documents that are compared with each other, each with each."""
_NEARLY_THE_SAME = 0.95
"""Cosine from which two documents are nearly the same."""

Item = dict[str, Any]


async def doubts(request: Request, services: Services, reference: str) -> Response:
    """The labels of a dataset to look at again, by the version to which ``reference`` refers now.

    Raises InvalidRequest, NotFound, Conflict for a version that left no labels out, TooManyRequests,
    UnsupportedMediaType.
    """
    body = await read_json(request, services, DoubtsBody)
    version, model, _ = await load_model(services, reference)
    return await run_scoring(request, services, _answer, services, version, model, body)


def _answer(services: Services, version: Version, model: Model, body: DoubtsBody) -> Response:
    if services.datasets.get(body.dataset).documents != services.datasets.get(version.dataset).documents:
        raise InvalidRequest(
            "dataset", f"has other documents than {version.dataset!r}, whose labels the model learned from"
        )
    left_out = services.models.held_out(version)
    if left_out is None:
        raise Conflict(
            f"version {version.number} of model {version.name!r} left no labels out; train one on labels of two "
            "classes, with auto or the option probabilities"
        )
    log = services.datasets.log(body.dataset)
    documents = services.datasets.open_annotated(body.dataset, log.answers())
    since = version.annotations or 0 if version.dataset == body.dataset else 0
    answered = np.unique([entry.position for _, entry in log.between(since, len(log))]).astype(np.int64)
    if version.label_kind == "several":
        doubted, n_labeled = _held_out_of_several(documents, version, left_out, answered, body.n)
    else:
        rates = None if documents.votes is None else rates_of(services, version)
        doubted, n_labeled = _held_out(documents, version, rates, left_out, answered, body.n)
    warnings: list[str] = []
    found = {(item["id"], item["label"]): item for item in doubted}
    for item in _duplicates(documents, model, answered, warnings):
        found.setdefault((item["id"], item["label"]), item)
    # duplicates contradict each other for certain, so they take up to half of the places, after the surest doubt
    held_out, duplicates = (
        [item for item in found.values() if (item["why"] == "duplicate") is duplicate] for duplicate in (False, True)
    )
    kept = duplicates[: max(body.n - len(held_out), body.n // 2)]
    listed = [*held_out[: body.n - len(kept)], *kept]
    if "document" in body.include:
        positions = services.datasets.positions(body.dataset, {item["id"] for item in listed})
        ascending = np.array(sorted(positions.values()), np.int64)
        stored = stored_documents(documents, ascending, services.datasets.fields(body.dataset))
        for item in listed:
            item["document"] = stored[positions[item["id"]]]
    return json_answer(
        {
            "model": version.name,
            "version": version.number,
            "dataset": body.dataset,
            "n_labeled": n_labeled,
            "doubts": listed,
            "warnings": warnings,
        }
    )


def _held_out(
    documents: Documents,
    version: Version,
    rates: VoterRates | None,
    left_out: LeftOut,
    answered: NDArray[np.int64],
    n: int,
) -> tuple[list[Item], int]:
    """The most doubtful labels that nobody has answered since, by the model and the votes together, and the number of
    left-out labels that still stand.
    """
    places = np.append(places_among(documents.classes, version.classes), -1)
    labels = places[documents.class_indices[left_out.positions]]
    known = labels >= 0
    n_labeled = int(np.count_nonzero(known))
    known &= ~np.isin(left_out.positions, answered)
    positions, labels, probabilities = left_out.positions[known], labels[known], left_out.probabilities[known]
    alone = probabilities.argmax(axis=1)
    if documents.votes is not None and rates is not None:
        probabilities = rates.told(probabilities.astype(np.float64), documents.votes.taken(positions)).astype(
            np.float32
        )
    rows = doubtful(probabilities, labels)[:n]
    ids = documents.ids.by_position(positions[rows].tolist())
    return [
        {
            "id": ids[position],
            "label": _label(documents, position),
            "likelier": version.classes[likelier],
            "applies": None,
            "probability": probability,
            "why": "votes" if by_votes else "held_out",  # the model alone would not doubt it
            "other": None,
        }
        for position, likelier, probability, by_votes in zip(
            positions[rows].tolist(),
            probabilities[rows].argmax(axis=1).tolist(),
            probabilities[rows, labels[rows]].tolist(),
            (alone[rows] == labels[rows]).tolist(),
            strict=True,
        )
    ], n_labeled


def _held_out_of_several(
    documents: Documents, version: Version, left_out: LeftOut, answered: NDArray[np.int64], n: int
) -> tuple[list[Item], int]:
    """The most doubtful of what is known of each document and label that nobody has answered since, and the number of
    all that the training left out and that is still known.
    """
    sets = documents.label_sets or LabelSets.of_single(documents.class_indices, documents.classes)
    known = sets.taken(left_out.positions).among(version.classes).matrix()
    said = np.where(known > 0, left_out.probabilities, 1 - left_out.probabilities)
    said[known == 0] = np.nan
    n_known = int(np.count_nonzero(np.isfinite(said)))
    said[np.isin(left_out.positions, answered)] = np.nan
    rows, columns = np.nonzero(said < 0.5)  # the other is likelier
    order = np.argsort(said[rows, columns], kind="stable")[:n]
    rows, columns = rows[order], columns[order]
    ids = documents.ids.by_position(left_out.positions[rows].tolist())
    return [
        {
            "id": ids[position],
            "label": version.classes[column],
            "likelier": None,
            "applies": applies,
            "probability": probability,
            "why": "held_out",
            "other": None,
        }
        for position, column, applies, probability in zip(
            left_out.positions[rows].tolist(),
            columns.tolist(),
            (known[rows, columns] > 0).tolist(),
            said[rows, columns].tolist(),
            strict=True,
        )
    ], n_known


def _duplicates(documents: Documents, model: Model, answered: NDArray[np.int64], warnings: list[str]) -> Iterator[Item]:
    """Pairs of nearly the same documents with different labels, each by its second document."""
    labeled = np.flatnonzero(documents.labeled)
    most = min(_MOST_COMPARED, comparable(documents.rows.indptr, labeled))
    if len(labeled) > most:
        warnings.append(f"only the first {most} labeled documents were compared with each other")
        labeled = labeled[:most]
    if len(labeled) < 2:
        return
    similar = np.triu(similarities(rows_at(model, documents, labeled)) >= _NEARLY_THE_SAME, 1)
    sets, classes = documents.label_sets, documents.class_indices
    own = classes[labeled, None] if sets is None else sets.taken(labeled).matrix() > 0
    said = np.unique(own, axis=0, return_inverse=True)[1].ravel()
    firsts, seconds = (labeled[places] for places in np.nonzero(similar & (said[:, None] != said[None, :])))
    ids = documents.ids.by_position(np.concatenate([firsts, seconds]).tolist())
    known = set(answered.tolist())
    for first, second in zip(firsts.tolist(), seconds.tolist(), strict=True):
        if not {first, second} <= known:
            yield {
                "id": ids[second],
                **_difference(documents, first, second),
                "probability": None,
                "why": "duplicate",
                "other": ids[first],
            }


def _difference(documents: Documents, first: int, second: int) -> Item:
    """What the labels of the second of two documents say otherwise than those of the first; of several labels the
    first of these.
    """
    if documents.label_sets is None:
        return {"label": _label(documents, second), "likelier": _label(documents, first), "applies": None}
    one, two = map(set, documents.given(np.array([first, second])))
    apart = min(one ^ two, key=label_order)
    return {"label": apart, "likelier": None, "applies": apart in two}


def _label(documents: Documents, position: int) -> Label:
    return documents.classes[int(documents.class_indices[position])]
