"""The label of one text, as flat as it goes: for tools that send a text and read a label, and nest neither."""

import msgspec
from fastapi import Request
from starlette.responses import Response

from app.http.bodies import in_thread, read_json
from app.http.schemas import Schema
from app.predictions.prediction import fits_event_loop, load_model
from app.predictions.scoring import score_posted
from app.services import Services
from core.documents.kinds import TextRows
from core.models.model import Model
from workers.contract import Label
from workers.repositories.datasets import Batch

_ENCODER = msgspec.json.Encoder()


class LabelBody(msgspec.Struct, forbid_unknown_fields=True):
    """A text to label."""

    text: str


class LabelOut(Schema):
    """The label of a text."""

    label: Label
    probability: float | None
    """Probability of the label; null if the model is not calibrated."""


async def label(request: Request, services: Services, reference: str) -> Response:
    """The label of the text in the body, by the version to which ``reference`` refers now."""
    body = await read_json(request, services, LabelBody)
    loaded = await load_model(services, reference)
    if fits_event_loop(loaded.model, 1) and len(body.text) < services.settings.large_request_bytes:
        return loaded.marked(_answer(loaded.model, body.text))
    return loaded.marked(await in_thread(services.predict_pool, _answer, loaded.model, body.text))


def _answer(model: Model, text: str) -> Response:
    (scored,) = score_posted(model, [Batch(TextRows.of([text]), [None])])
    probabilities = model.probabilities(scored.scores)
    place = int(model.labels_of(scored.scores, probabilities)[0])
    probability = None if probabilities is None else float(probabilities[0, place])
    return Response(_ENCODER.encode({"label": model.classes[place], "probability": probability}), media_type="application/json")
