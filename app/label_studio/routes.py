"""Routes that Label Studio calls, at ``/label-studio`` or, with a model of one's choice, at
``/label-studio/{model}``."""

import asyncio
from functools import partial
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.background import BackgroundTask
from starlette.responses import Response

from app.errors import InvalidRequest
from app.http.access import KEY_ID
from app.http.answers import json_answer
from app.http.requests import RawRoute, in_thread, read_json, services_of
from app.http.schemas import ENCODING, error_responses, json_body, path_parameter
from app.label_studio.label_config import NotTextChoice, text_choice
from app.label_studio.schemas import (
    BackendHealth,
    BackendSetup,
    BackendVersions,
    PredictBody,
    ProjectEvent,
    SetupBody,
    TaskResults,
    WebhookAnswer,
)
from app.label_studio.service import Named, Project, Trainer, find, predict, train, version_text

router = APIRouter(prefix="/label-studio", tags=["label-studio"], route_class=RawRoute)
training_router = APIRouter(prefix="/label-studio", tags=["label-studio-training"], route_class=RawRoute)

_MODEL = path_parameter("model", "Name of a model, name@alias, or name:number for a version.")
_TASK = {"id": 1, "data": {"text": "The goalkeeper saved the penalty."}}
_CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="topic" toName="text"><Choice '
    'value="sport"/></Choices></View>'
)
_REFUSED = (404, 408, 413, 415, 422, 429, 503)
_LARGEST_ID = 2**63 - 1
_STARTS = ("START_TRAINING",)
_CHANGES = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED")


def _answers(kind: type[Any], *refused: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": kind}, **error_responses(*refused)}


def _described(kind: type[msgspec.Struct], example: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {**json_body(kind, example), "parameters": [*parameters, ENCODING]}


_SETUP = partial(_described, SetupBody, {"project": "12.1716", "schema": _CONFIG})
_PREDICT = partial(_described, PredictBody, {"tasks": [_TASK], "label_config": _CONFIG, "project": "12.1716"})
_WEBHOOK = partial(_described, ProjectEvent, {"action": "START_TRAINING", "project": {"id": 12}})


@router.get("/health", responses=_answers(BackendHealth))
@router.get(
    "/{model}/health",
    responses=_answers(BackendHealth),
    openapi_extra={"parameters": [_MODEL]},
    name="label_studio_model_health",
)
async def label_studio_health(request: Request) -> Response:
    """Report that the backend answers."""
    error = _trainer_of(request).last_error
    return json_answer(BackendHealth(status="UP", model_class="Halfmoon", last_error=error))


@router.post("/setup", responses=_answers(BackendSetup, *_REFUSED), openapi_extra=_SETUP())
@router.post(
    "/{model}/setup",
    responses=_answers(BackendSetup, *_REFUSED),
    openapi_extra=_SETUP(_MODEL),
    name="label_studio_model_setup",
)
async def label_studio_setup(request: Request) -> Response:
    """Connect a project, and name the version that predicts now."""
    services = services_of(request)
    body = await read_json(request, services, SetupBody)
    try:
        await in_thread(services.pools.parse, text_choice, body.schema)
    except NotTextChoice as error:
        raise InvalidRequest("schema", str(error)) from None
    loaded = await find(services, _named(request, body.project))
    return json_answer(BackendSetup(model_version="" if loaded is None else version_text(loaded)))


@router.post("/predict", responses=_answers(TaskResults, *_REFUSED), openapi_extra=_PREDICT())
@router.post(
    "/{model}/predict",
    responses=_answers(TaskResults, *_REFUSED),
    openapi_extra=_PREDICT(_MODEL),
    name="label_studio_model_predict",
)
async def label_studio_predict(request: Request) -> Response:
    """Predict the labels of tasks: as many results as tasks, empty where nothing can be said."""
    services = services_of(request)
    body = await read_json(request, services, PredictBody)
    results = await predict(services, _named(request, body.project), body.tasks, body.label_config)
    return json_answer({"results": results})


@router.get(
    "/{model}/versions",
    responses=_answers(BackendVersions, 404, 503),
    openapi_extra={"parameters": [_MODEL]},
    name="label_studio_model_versions",
)
async def label_studio_versions(request: Request) -> Response:
    """List the versions of a model."""
    services, named = services_of(request), _named(request, "")
    versions = await in_thread(services.pools.load, services.models.versions, named.name)
    return json_answer(BackendVersions(versions=[f"{named.name}:{version.number}" for version in reversed(versions)]))


@training_router.post("/webhook", responses=_answers(WebhookAnswer, *_REFUSED), openapi_extra=_WEBHOOK())
@training_router.post(
    "/{model}/webhook",
    responses=_answers(WebhookAnswer, *_REFUSED),
    openapi_extra=_WEBHOOK(_MODEL),
    name="label_studio_model_webhook",
)
async def label_studio_webhook(request: Request) -> Response:
    """Take note of an event, at once. Training reads the tasks of the project from Label Studio afterwards."""
    services = services_of(request)
    body = await read_json(request, services, ProjectEvent)
    id = body.project.get("id") if body.project else None
    if type(id) is not int or not 0 < id <= _LARGEST_ID or body.action not in (*_STARTS, *_CHANGES):
        return json_answer(
            WebhookAnswer(status="ignored", detail=f"{body.action or 'no action'} does not begin a training")
        )
    if services.settings.label_studio_url is None:
        return json_answer(
            WebhookAnswer(
                status="ignored", detail="HALFMOON_LABEL_STUDIO_URL and HALFMOON_LABEL_STUDIO_TOKEN are not set"
            )
        )
    project = Project(id, _named(request, str(id)).name, request.scope.get(KEY_ID))
    trainer = _trainer_of(request)
    if not trainer.wants(project, body.action in _STARTS):
        return json_answer(
            WebhookAnswer(
                status="later", detail="a training is under way or began a moment ago, or others keep this gateway busy"
            )
        )
    return json_answer(
        WebhookAnswer(status="training", detail=f"model {project.model}"),
        background=BackgroundTask(asyncio.to_thread, trainer.run, project),
    )


def _named(request: Request, project: str | int) -> Named:
    return Named.of(request.path_params.get("model"), str(project))


def _trainer_of(request: Request) -> Trainer:
    state = request.app.state
    if not hasattr(state, "label_studio"):
        state.label_studio = Trainer(partial(train, services_of(request)))
    found: Trainer = state.label_studio
    return found
