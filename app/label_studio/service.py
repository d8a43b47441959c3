"""Training on labels of a project, and predictions of its tasks.

The tasks to train on are read from Label Studio, which has the truth, and not from its events.

The operator sets the address of Label Studio; no request names another.
"""

import hashlib
import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import structlog

from app.http.requests import in_thread
from app.jobs.schemas import JobBody
from app.jobs.service import submit
from app.label_studio.label_config import TextChoice, text_choice
from app.predictions.scoring import score_posted
from app.predictions.service import Loaded, load_model
from app.services.wiring import Services
from core.documents.kinds import TextRows
from core.errors import HalfmoonError
from storage.errors import NotFound
from storage.repositories.datasets import Batch
from storage.repositories.datasets.annotations.answers import majority

_SECONDS = 60.0
"""seconds between two trainings that single annotations begin"""
_MOST_RUNNING = 2
"""projects whose tasks are read at a time: each takes a thread, and memory for its export"""
_MOST_ERRORS = 100
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_SILENT_SECONDS = 60.0
"""seconds for which Label Studio may be silent"""
_TOTAL_SECONDS = 600.0
"""seconds of an answer in all"""
_BLOCK_BYTES = 1 << 18
_ADVICE = {
    401: "HALFMOON_LABEL_STUDIO_TOKEN must be a valid token",
    403: "HALFMOON_LABEL_STUDIO_TOKEN must be a valid token",
    **dict.fromkeys(
        (301, 302, 303, 307, 308),
        "HALFMOON_LABEL_STUDIO_URL must be the address that it leads to, since the token goes nowhere else",
    ),
}


class _Result(msgspec.Struct):
    from_name: str | None = None
    value: Any = None


class _Annotation(msgspec.Struct):
    result: list[_Result] | None = None
    was_cancelled: bool | None = None
    completed_by: Any = None
    """number of the person, or an object with it as ``id``"""


class _Task(msgspec.Struct):
    """A task in an export, which has more fields than these."""

    id: int | str
    data: dict[str, Any] | None = None
    annotations: list[_Annotation] | None = None


class Project(NamedTuple):
    """A project, and the model that its labels train."""

    id: int
    model: str
    key_id: str | None = None
    """id of the API key that asks for the training"""


class Trainer:
    """Trains models on projects, one at a time a project; requests meanwhile lead to one training afterwards."""

    def __init__(self, train: Callable[[Project], str | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._train = train
        self._clock = clock
        self._lock = threading.Lock()
        self._running: set[Project] = set()
        self._again: set[Project] = set()
        self._began: dict[Project, float] = {}
        self._errors: dict[Project, str] = {}

    @property
    def last_error(self) -> str | None:
        """Why the last training on a project failed, of one that has failed; None if none has."""
        return next(reversed(self._errors.values()), None)

    def wants(self, project: Project, at_once: bool) -> bool:
        """Whether ``run`` is to be called: not while it runs or too many do, nor for a single annotation soon after it
        began.
        """
        with self._lock:
            now = self._clock()
            self._began = {each: at for each, at in self._began.items() if now - at < _SECONDS}
            if project in self._running:
                self._again.add(project)
                return False
            if len(self._running) >= _MOST_RUNNING or (not at_once and project in self._began):
                return False
            self._running.add(project)
            self._began[project] = now
            return True

    def run(self, project: Project) -> None:
        """Train on a project, and again if that was asked for meanwhile."""
        again = True
        while again:
            error = None
            try:
                job = self._train(project)
            except HalfmoonError as failure:
                error = str(failure)
                _log.warning(
                    "cannot train on a project of Label Studio", project=project.id, model=project.model, error=error
                )
            except Exception:
                error = "an internal error, which the log of the gateway describes"
                _log.exception(
                    "a training on a project of Label Studio failed", project=project.id, model=project.model
                )
            else:
                _log.info("trained on a project of Label Studio", project=project.id, model=project.model, job=job)
            with self._lock:
                self._errors.pop(project, None)
                if error is not None:
                    self._errors[project] = f"project {project.id}: {error}"
                    self._errors = dict(list(self._errors.items())[-_MOST_ERRORS:])
                again = project in self._again
                self._again.discard(project)
                if not again:
                    self._running.discard(project)


def train(services: Services, project: Project) -> str:
    """Submit a job on all tasks of a project; its id.

    Tasks that have not changed make no second job. Raises HalfmoonError.
    """
    settings = services.settings
    assert settings.label_studio_url is not None
    token = "" if settings.label_studio_token is None else settings.label_studio_token.get_secret_value()
    client = Client(settings.label_studio_url, token, settings.max_request_bytes)
    choice = text_choice(field_of(client.get(f"projects/{project.id}"), "label_config"))
    documents = documents_of(
        choice, client.get(f"projects/{project.id}/export?exportType=JSON&download_all_tasks=true")
    )
    content = msgspec.json.encode(documents)
    # several models may learn from one project
    key = f"label-studio-{project.id}-{hashlib.sha256(f'{project.model}/'.encode() + content).hexdigest()}"
    steps = submit(services, JobBody(model=project.model, documents=msgspec.Raw(content)), key, project.key_id)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            job, _ = end.value
            return str(job.request.id)


def documents_of(choice: TextChoice, tasks: Any) -> list[dict[str, Any]]:
    """The documents that tasks are.

    Of several people's labels the most frequent counts, of equals the last; where people who are known disagree, these
    are votes instead. Of several choices each counts that most people made.
    """
    try:
        read = msgspec.convert(tasks, list[_Task])
    except msgspec.ValidationError as error:
        raise LabelStudioUnavailable(f"its export is not a list of tasks: {error}") from None
    found = []
    for task in read:
        text = choice.text_of(task.data or {})
        if text is not None:
            given = [
                (_person(annotation.completed_by), chosen)
                for annotation in (task.annotations or [])
                if not annotation.was_cancelled and (chosen := _choices(annotation, choice)) is not None
            ]
            known = (
                _several(given) if choice.several else _single([(person, each[0]) for person, each in given if each])
            )
            found.append({"id": str(task.id), "text": text} | known)
    agreed = {each["label"] for each in found if "label" in each and "votes" not in each}
    for document in found:
        # votes stand in place of the label; those for a class on which nobody agrees anywhere are not heard
        if "votes" in document:
            heard = {person: label for person, label in document["votes"].items() if label in agreed}
            document["votes"] = heard
            del document["label" if len({*heard.values()}) > 1 else "votes"]
    return found


def _single(given: list[tuple[str | None, str]]) -> dict[str, Any]:
    """The label of a task, and the votes where people disagree."""
    if not given:
        return {}
    counts = Counter(label for _, label in reversed(given))
    votes = {person: label for person, label in given if person is not None}
    disagreed = {"votes": votes} if len(set(votes.values())) > 1 else {}
    return {"label": counts.most_common(1)[0][0], **disagreed}


def _several(given: list[tuple[str | None, list[str]]]) -> dict[str, Any]:
    """The labels that more than half of the people chose; where half of them did, the last decides."""
    chosen = [tuple({*choices}) for _, choices in given]
    return {"labels": list(majority(chosen, chosen[-1]))} if chosen else {}


def _choices(annotation: _Annotation, choice: TextChoice) -> list[str] | None:
    """The choices of an annotation, none of one that leaves them out; None where it is of something else alone."""
    results = annotation.result or []
    own = [result.value for result in results if result.from_name == choice.from_name]
    given = [value.get("choices") for value in own if isinstance(value, dict)]
    chosen = [each for choices in given if isinstance(choices, list) for each in choices if isinstance(each, str)]
    return chosen if chosen or not results else None


def _person(completed_by: Any) -> str | None:
    """The name of a person as a voter, None if it is not said who it was."""
    number = completed_by.get("id") if isinstance(completed_by, dict) else completed_by
    return f"person-{number}" if isinstance(number, int) else None


class LabelStudioUnavailable(HalfmoonError):
    """Label Studio does not answer as it should."""


class Client:
    """Reads from Label Studio, by its personal access token or by a token of the former kind."""

    def __init__(self, url: str, token: str, most: int) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._most = most
        self._header: str | None = None
        self._opener = urllib.request.build_opener(_NoRedirects)

    def get(self, path: str) -> Any:
        """The JSON at a path below /api. Raises LabelStudioUnavailable."""
        if self._header is None:
            header = f"Token {self._token}"
            if self._token.count(".") == 2:
                # a personal access token is exchanged for one that lives some minutes
                body = json.dumps({"refresh": self._token}).encode()
                answer = self._answer(
                    urllib.request.Request(f"{self._url}/api/token/refresh", body, {"Content-Type": "application/json"})
                )
                header = f"Bearer {field_of(answer, 'access')}"
            self._header = header
        return self._answer(urllib.request.Request(f"{self._url}/api/{path}", headers={"Authorization": self._header}))

    def _answer(self, request: urllib.request.Request) -> Any:
        try:
            end, content = time.monotonic() + _TOTAL_SECONDS, bytearray()
            with self._opener.open(request, timeout=_SILENT_SECONDS) as answer:
                while block := answer.read1(_BLOCK_BYTES):
                    content += block
                    if len(content) > self._most:
                        raise LabelStudioUnavailable(
                            f"{request.full_url}: more than HALFMOON_MAX_REQUEST_BYTES, {self._most} bytes"
                        )
                    if time.monotonic() > end:
                        raise TimeoutError("timed out")
            return json.loads(bytes(content))
        except (OSError, http.client.HTTPException) as error:
            advice = None
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                advice = _ADVICE.get(error.code)
            raise LabelStudioUnavailable(f"{request.full_url}: {error}" + (f"; {advice}" if advice else "")) from None
        except (ValueError, RecursionError):
            raise LabelStudioUnavailable(f"{request.full_url}: the answer is not JSON") from None


def field_of(answer: Any, name: str) -> str:
    """A text in an answer. Raises LabelStudioUnavailable where it is not there."""
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, str):
        raise LabelStudioUnavailable(f"an answer of Label Studio has no {name}")
    return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the token to another address."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse it; the answer is an error then."""


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
        return await in_thread(services.pools.predicting(loaded.model), _predicted, loaded, tasks, config)
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
