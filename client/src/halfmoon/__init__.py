"""Client of Halfmoon, a service that classifies documents from few labels."""

from typing import TYPE_CHECKING, Any

from halfmoon._sync.client import Halfmoon
from halfmoon._sync.datasets import Dataset
from halfmoon._sync.jobs import Job
from halfmoon._sync.models import Model
from halfmoon.errors import (
    Conflict,
    ConnectionFailed,
    Forbidden,
    HalfmoonError,
    InvalidData,
    InvalidRequest,
    JobFailed,
    LimitExceeded,
    NotFound,
    RequestFailed,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
)
from halfmoon.labels import Labels
from halfmoon.records import Annotation, Evaluation, Explanation, Prediction, Progress, Suggestion, Trace, Version

if TYPE_CHECKING:
    from halfmoon._async.client import AsyncHalfmoon
    from halfmoon._async.datasets import AsyncDataset
    from halfmoon._async.jobs import AsyncJob
    from halfmoon._async.models import AsyncModel

__all__ = [
    "Annotation",
    "AsyncDataset",
    "AsyncHalfmoon",
    "AsyncJob",
    "AsyncModel",
    "Conflict",
    "ConnectionFailed",
    "Dataset",
    "Evaluation",
    "Explanation",
    "Forbidden",
    "Halfmoon",
    "HalfmoonError",
    "InvalidData",
    "InvalidRequest",
    "Job",
    "JobFailed",
    "Labels",
    "LimitExceeded",
    "Model",
    "NotFound",
    "Prediction",
    "Progress",
    "RequestFailed",
    "Suggestion",
    "TooManyRequests",
    "Trace",
    "Unauthenticated",
    "Unavailable",
    "Version",
    "WaitTimeout",
]

_ASYNC = {"AsyncDataset": "datasets", "AsyncHalfmoon": "client", "AsyncJob": "jobs", "AsyncModel": "models"}


def __getattr__(name: str) -> Any:
    """The client that is awaited, loaded when it is used: asyncio takes half the time of an import."""
    if name not in _ASYNC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"halfmoon._async.{_ASYNC[name]}"), name)
