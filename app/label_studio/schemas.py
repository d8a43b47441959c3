"""Schemas of the calls of Label Studio. It sends more fields than these, which are ignored."""

from typing import Any

import msgspec

from app.http.schemas import Schema


class SetupBody(msgspec.Struct):
    """A project that is connected."""

    project: str | int = ""
    schema: str = ""


class PredictBody(msgspec.Struct):
    """Tasks to predict."""

    tasks: list[dict[str, Any]]
    label_config: str = ""
    project: str | int = ""


class ProjectEvent(msgspec.Struct):
    """An event in a project."""

    action: str = ""
    project: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class BackendHealth(Schema):
    """Health of the backend."""

    status: str
    model_class: str
    last_error: str | None
    """Why a training on a project failed last; null if it did not."""


class BackendSetup(Schema):
    """The version that predicts now."""

    model_version: str
    """Name and number of the version, as in tickets:3; empty before the first training."""


class TaskResult(Schema):
    """A prediction for a task."""

    result: list[dict[str, Any]]
    score: float
    """Probability of the label."""
    model_version: str


class TaskResults(Schema):
    """A result for each task."""

    results: list[TaskResult]


class BackendVersions(Schema):
    """Versions of the model, newest first."""

    versions: list[str]


class WebhookAnswer(Schema):
    """Response to an event."""

    status: str
    """training, later (a training is under way or began a moment ago, or others keep the gateway busy) or ignored."""
    detail: str
