"""Training on what people have labeled in a project: the tasks are read from Label Studio, which has the truth, and not from what it has sent."""

import hashlib
import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import structlog

from app.jobs.schemas import JobBody
from app.jobs.submission import Accepted, submit
from app.label_studio.label_config import TextChoice, text_choice
from app.services import Services
from core.errors import HalfmoonError

_SECONDS = 60.0
"""seconds that Label Studio has for an answer; and those between two trainings that single annotations begin"""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LabelStudioUnavailable(HalfmoonError):
    """Label Studio does not answer as it should."""


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
        """Whether ``run`` is to be called: not while it runs, nor for a single annotation soon after it began."""
        with self._lock:
            if project in self._running:
                self._again.add(project)
                return False
            began = self._began.get(project)
            if not at_once and began is not None and self._clock() - began < _SECONDS:
                return False
            self._running.add(project)
            return True

    def run(self, project: Project) -> None:
        """Train on a project, and again if that was asked for meanwhile."""
        while True:
            self._began[project] = self._clock()
            try:
                job = self._train(project)
                self._errors.pop(project, None)
                _log.info("trained on a project of Label Studio", project=project.id, model=project.model, job=job)
            except HalfmoonError as error:
                self._errors[project] = f"project {project.id}: {error}"
                _log.warning("cannot train on a project of Label Studio", project=project.id, model=project.model, error=str(error))
            with self._lock:
                if project not in self._again:
                    self._running.discard(project)
                    return
                self._again.discard(project)


def train(services: Services, project: Project) -> str:
    """Submit a job on all tasks of a project; its id. Tasks that have not changed make no second job. Raises HalfmoonError."""
    settings = services.settings
    assert settings.label_studio_url is not None
    token = "" if settings.label_studio_token is None else settings.label_studio_token.get_secret_value()
    client = Client(settings.label_studio_url, token, settings.max_request_bytes)
    choice = text_choice(str(client.get(f"projects/{project.id}")["label_config"]))
    documents = documents_of(choice, client.get(f"projects/{project.id}/export?exportType=JSON&download_all_tasks=true"))
    content = msgspec.json.encode(documents)
    key = f"label-studio-{project.id}-{hashlib.sha256(content).hexdigest()}"
    steps = submit(services, JobBody(model=project.model, documents=msgspec.Raw(content)), key, project.key_id)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            accepted: Accepted = end.value
            return accepted.job.request.id


def documents_of(choice: TextChoice, tasks: Any) -> list[dict[str, Any]]:
    """The documents that tasks are. Of several people's labels the most frequent counts, of equals the last."""
    if not isinstance(tasks, list):
        raise LabelStudioUnavailable("its export is not a list of tasks")
    found = []
    for task in tasks:
        text = choice.text_of(task.get("data") or {})
        if text is not None:
            label = _label(choice, task.get("annotations") or [])
            found.append({"id": str(task["id"]), "text": text} | ({} if label is None else {"label": label}))
    return found


def _label(choice: TextChoice, annotations: Sequence[Mapping[str, Any]]) -> str | None:
    given = [
        result["value"]["choices"][0]
        for annotation in annotations
        if not annotation.get("was_cancelled")
        for result in annotation.get("result") or []
        if result.get("from_name") == choice.from_name and result.get("value", {}).get("choices")
    ]
    return Counter(reversed(given)).most_common(1)[0][0] if given else None


class Client:
    """Reads from Label Studio, by its personal access token or by a token of the former kind."""

    def __init__(self, url: str, token: str, most: int) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._most = most
        self._header: str | None = None

    def get(self, path: str) -> Any:
        """The JSON at a path below /api. Raises LabelStudioUnavailable."""
        if self._header is None:
            self._header = self._authorization()
        return self._answer(urllib.request.Request(f"{self._url}/api/{path}", headers={"Authorization": self._header}))

    def _authorization(self) -> str:
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        # a personal access token is exchanged for one that lives some minutes
        body = json.dumps({"refresh": self._token}).encode()
        request = urllib.request.Request(f"{self._url}/api/token/refresh", body, {"Content-Type": "application/json"})
        return f"Bearer {self._answer(request)['access']}"

    def _answer(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                content = answer.read(self._most + 1)
        except (OSError, ValueError) as error:
            advice = "; HALFMOON_LABEL_STUDIO_TOKEN must be a valid token" if getattr(error, "code", None) in (401, 403) else ""
            raise LabelStudioUnavailable(f"{request.full_url}: {error}{advice}") from None
        if len(content) > self._most:
            raise LabelStudioUnavailable(f"{request.full_url}: more than HALFMOON_MAX_REQUEST_BYTES, {self._most} bytes")
        try:
            return json.loads(content)
        except ValueError:
            raise LabelStudioUnavailable(f"{request.full_url}: the answer is not JSON") from None
