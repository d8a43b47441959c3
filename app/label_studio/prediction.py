"""Predictions of tasks: as many results as tasks in every case, since Label Studio drops all of them if one is
missing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import structlog

from app.http.requests import in_thread
from app.label_studio.label_config import text_choice
from app.predictions.scoring import score_posted
from app.predictions.service import Loaded, load_model
from app.services import Services
from core.documents.kinds import TextRows
from core.errors import HalfmoonError
from storage.errors import NotFound
from storage.repositories.datasets import Batch

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Result = dict[str, Any]


class Named(NamedTuple):
    """The model that predicts, by name, alias or number."""

    reference: str

    @classmethod
    def of(cls, given: str | None, project: str) -> "Named":
        """The model of an address, ``name``, ``name@alias`` or ``name:number``; by default the model of the project."""
        name, colon, number = (given or "").rpartition(":")
        if colon and number.isdecimal():
            return cls(f"{name}/{number}")
        return cls(given or f"label-studio-{project.partition('.')[0]}")

    @property
    def name(self) -> str:
        """The name alone: training makes a new version of it."""
        return self.reference.partition("@")[0].partition("/")[0]


def version_text(loaded: Loaded) -> str:
    """A version, as Label Studio lists it."""
    return f"{loaded.version.name}:{loaded.version.number}"


async def find(services: Services, named: Named) -> Loaded | None:
    """The version that predicts now, None before there is one."""
    try:
        return await load_model(services, named.reference)
    except NotFound:
        return None


async def predict(services: Services, named: Named, tasks: Sequence[dict[str, Any]], config: str) -> list[Result]:
    """A result for each task, empty where nothing can be said of it."""
    nothing: Result = {"result": [], "score": 0.0, "model_version": ""}
    try:
        loaded = await find(services, named)
        if loaded is None:
            return [nothing for _ in tasks]
        return await in_thread(services.predict_pool, _predicted, loaded, tasks, config)
    except HalfmoonError as error:
        _log.warning("no predictions for Label Studio", model=named.reference, tasks=len(tasks), error=str(error))
        return [nothing for _ in tasks]


def _predicted(loaded: Loaded, tasks: Sequence[dict[str, Any]], config: str) -> list[Result]:
    choice = text_choice(config)
    texts = [choice.text_of(task.get("data") or {}) for task in tasks]
    version, model = version_text(loaded), loaded.model
    results: list[Result] = [{"result": [], "score": 0.0, "model_version": version} for _ in texts]
    places = [place for place, text in enumerate(texts) if text is not None]
    if not places:
        return results
    rows = TextRows.of([text for text in texts if text is not None])
    at = iter(places)
    for scored in score_posted(model, [Batch(rows, [None] * len(places))]):
        likely = model.probabilities(scored.scores)
        if model.several:
            assert likely is not None
            given = model.given_labels(likely)
            labels = model.label_sets(likely)
            sure = np.where(given, likely, 1 - likely).min(axis=1).tolist()
        else:
            positions = model.labels_of(scored.scores, likely)
            labels = [[model.classes[position]] for position in positions.tolist()]
            sure = [0.0] * len(labels) if likely is None else likely[np.arange(len(labels)), positions].tolist()
        for row, certainty in zip(labels, sure, strict=True):
            result = results[next(at)]
            result["result"] = choice.result([str(label) for label in row])
            result["score"] = certainty
    return results
