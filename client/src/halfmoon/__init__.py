"""Client of Halfmoon, a service that classifies documents from few labels.

    from halfmoon import Halfmoon

    hm = Halfmoon("http://127.0.0.1:8000")      # HALFMOON_URL, HALFMOON_API_KEY; Halfmoon.local() starts a service

Documents in: a data frame, a list of texts or dicts, a matrix, or the path of a file.

    data = hm.datasets.create(frame, text="body", label="topic", name="tickets")
    data = hm.datasets["tickets"]               # the newest of this name; hm.datasets lists them
    data.to_pandas(model="tickets")             # id, text, label, by whom, predicted, probability

A model that learns from the labels and from all other texts:

    job = hm.train(data, model="tickets").wait(progress=True)
    job.labels().to_pandas()                    # the label of each document that had none
    job.report                                  # what was tried, estimated and chosen

    model = hm.models["tickets"]                # also "tickets@live", or ("tickets", 3)
    model.predict(["The printer is on fire."]).to_pandas()
    model.explain(["The printer is on fire."])
    model.evaluate(known)                       # accuracy, confusion; .page is HTML with plots
    model.export("tickets.zip")                 # predicts without the service
    model.aliases["live"] = 3

Labels of people:

    for each in model.suggest(data, n=20):      # what to label next
        data.annotate(each, label="fire", by="ann")
    hm.train(data, model="tickets", annotations="latest")
    model.doubts(data)                          # labels that look wrong
    data.draw_audit(n=100)                      # a random sample, which measures every version

What went wrong is a HalfmoonError: InvalidData before anything is sent, InvalidRequest, NotFound, Conflict,
LimitExceeded, TooManyRequests or Unavailable as the service answered, JobFailed, ConnectionFailed.
``AsyncHalfmoon`` has the same methods, to be awaited; ``halfmoon.sklearn`` has a classifier of scikit-learn,
``halfmoon.mlflow`` a flavour of MLflow, ``halfmoon.prodigy`` a recipe of Prodigy.

All that they can do: help(halfmoon.Halfmoon), help(hm.datasets), help(halfmoon.Dataset), help(halfmoon.Job),
help(hm.models), help(halfmoon.Model), help(halfmoon.Prediction).
"""

import typing as _typing

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

if _typing.TYPE_CHECKING:
    from halfmoon._async.client import AsyncHalfmoon
    from halfmoon._async.datasets import AsyncDataset
    from halfmoon._async.jobs import AsyncJob
    from halfmoon._async.models import AsyncModel

    # known to type checkers alone: with it, help(halfmoon) would print each class in full
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


def __getattr__(name: str) -> _typing.Any:
    """The client that is awaited, loaded when it is used: asyncio takes half the time of an import."""
    if name not in _ASYNC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"halfmoon._async.{_ASYNC[name]}"), name)
