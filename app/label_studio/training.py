"""Training on what people have labeled in a project: the tasks are read from Label Studio, which has the truth, and not
from what it has sent.
"""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import structlog

from app.jobs.schemas import JobBody
from app.jobs.submission import Accepted, submit
from app.label_studio.client import Client, LabelStudioUnavailable, field_of
from app.label_studio.label_config import TextChoice, text_choice
from app.services import Services
from core.errors import HalfmoonError

_SECONDS = 60.0
"""seconds between two trainings that single annotations begin"""
_MOST_RUNNING = 2
"""projects whose tasks are read at a time: each takes a thread, and memory for its export"""
_MOST_ERRORS = 100
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Result(msgspec.Struct):
    from_name: str | None = None
    value: Any = None


class _Annotation(msgspec.Struct):
    result: list[_Result] | None = None
    was_cancelled: bool | None = None


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
    """Trains models on projects, one at a time a project; what is asked for meanwhile is done afterwards, once."""

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
            error = self._error_of(project)
            with self._lock:
                self._errors.pop(project, None)
                if error is not None:
                    self._errors[project] = f"project {project.id}: {error}"
                    self._errors = dict(list(self._errors.items())[-_MOST_ERRORS:])
                again = project in self._again
                self._again.discard(project)
                if not again:
                    self._running.discard(project)

    def _error_of(self, project: Project) -> str | None:
        """Train on a project; why that failed, None if it did not."""
        try:
            job = self._train(project)
        except HalfmoonError as error:
            _log.warning(
                "cannot train on a project of Label Studio", project=project.id, model=project.model, error=str(error)
            )
            return str(error)
        except Exception:
            _log.exception("a training on a project of Label Studio failed", project=project.id, model=project.model)
            return "an internal error, which the log of the gateway describes"
        _log.info("trained on a project of Label Studio", project=project.id, model=project.model, job=job)
        return None


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
            accepted: Accepted = end.value
            return accepted.job.request.id


def documents_of(choice: TextChoice, tasks: Any) -> list[dict[str, Any]]:
    """The documents that tasks are. Of several people's labels the most frequent counts, of equals the last."""
    try:
        read = msgspec.convert(tasks, list[_Task])
    except msgspec.ValidationError as error:
        raise LabelStudioUnavailable(f"its export is not a list of tasks: {error}") from None
    found = []
    for task in read:
        text = choice.text_of(task.data or {})
        if text is not None:
            label = _label(choice, task.annotations or [])
            found.append({"id": str(task.id), "text": text} | ({} if label is None else {"label": label}))
    return found


def _label(choice: TextChoice, annotations: Sequence[_Annotation]) -> str | None:
    results = [
        result for annotation in annotations if not annotation.was_cancelled for result in annotation.result or []
    ]
    chosen = [_first_choice(result.value) for result in results if result.from_name == choice.from_name]
    given = [label for label in chosen if label is not None]
    return Counter(reversed(given)).most_common(1)[0][0] if given else None


def _first_choice(value: Any) -> str | None:
    """The first choice of a result, None for a result of another kind."""
    choices = value.get("choices") if isinstance(value, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, str) else None
