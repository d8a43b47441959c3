"""The records that gateway and workers share, each noun once, and the names under which they are stored.

Every record but an alias is written once and never changed; what changes is which records exist. The state of a job is read off the
records it has (see ``docs/architecture.md``), so no lost message and no late writer can make it lie.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from core.documents.kinds import Kind
from core.problem.result import Status

Label = str | int
"""A class as its owner wrote it. Within a dataset all labels are strings or all are integers."""

MAX_TEXT = 256
"""Longest label and longest id of a document, in characters."""


class Record(BaseModel):
    """Something written to the store as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class File(Record):
    """One stored array or text and its checksum."""

    key: str
    sha256: str
    bytes: int


class Problem(Record):
    """What went wrong, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = []


class Dataset(Record):
    """A sealed set of documents: ``datasets/{id}/manifest.json``. Its documents may be shared with the dataset it was relabeled from."""

    id: str
    name: str | None
    n_documents: int
    n_labeled: int
    kind: Kind = "vectors"
    """of its documents"""
    n_features: int | None
    """null of text: what its terms are depends on who asks"""
    n_nonzeros: int | None
    """null of text"""
    classes: list[tuple[Label, int]]
    """each class with the number of documents labeled with it, sorted (integers by value, strings by code point)"""
    sha256: str
    """over the content, not the encoding: the same documents give the same digest however they were sent"""
    created_at: AwareDatetime
    warnings: list[str]
    documents: str
    """id of the dataset under which the rows and ids are stored"""
    files: dict[str, File]
    """``labels`` (.npy) and, unless ids are positions, ``ids`` (NDJSON); of vectors ``indptr``, ``indices``, ``values`` (.npy), of named features
    also ``names`` (NDJSON); of text ``indptr`` and ``text`` (.npy, UTF-8)"""


class JobState(StrEnum):
    """Where a job is. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Whether a job in this state stays in it."""
        return self in (JobState.CANCELLED, JobState.SUCCEEDED, JobState.FAILED)


class JobRequest(Record):
    """What was asked for: ``jobs/{id}/request.json``, fsynced before the job is enqueued."""

    id: str
    dataset: str
    model: str
    algorithm: str
    options: dict[str, Any]
    """all of them, those left out by the client with the defaults of the day, so that a version tells what it was trained with"""
    seed: int
    text: dict[str, int] | None = None
    """how text becomes terms, likewise; null of a dataset of another kind"""
    start: "Publication | None" = None
    """the model to start from"""
    key: str | None = None
    """digest of the idempotency key that made the job"""
    caller: str | None = None
    """id of the API key that it was asked for with"""
    created_at: AwareDatetime

    @field_validator("options")
    @classmethod
    def _as_they_are_said_now(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Before fractions could be estimated, null stood for those of the labels; such a job may wait in a store of then."""
        return options | {"positive_fraction": "labeled"} if options.get("positive_fraction", "") is None else options


class Attempt(Record):
    """One worker's claim to run a job: ``jobs/{id}/attempts/{number}.json``, numbered from 1."""

    number: int
    worker: str
    started_at: AwareDatetime


class Death(Record):
    """How the process ended that ran an attempt: ``jobs/{id}/attempts/{number}.killed.json``; of a worker that died with it nobody can tell."""

    signal: int | None
    """None: it ended by itself, with an error"""
    peak_bytes: int
    """the most memory that it had"""


class Cancellation(Record):
    """The wish that a job stop: ``jobs/{id}/cancel.json``."""

    requested_at: AwareDatetime


class Progress(BaseModel):
    """Where a job is. While it runs this lives in Redis only and may be lost; the last goes into the outcome."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    fraction: float = 0.0
    """estimated share of the work that is done, 0 to 1"""
    phase: str = ""
    """what a queued job waits for, or what a running one does, in words; the trace has its own names for phases"""
    iteration: int = 0
    """number within the phase"""
    objective: float | None = None
    """the objective that chooses the best iterate, as far as it is known"""


class Outcome(Record):
    """How a job ended: ``jobs/{id}/outcome.json``. The first to be created wins; every other attempt's work is thrown away."""

    state: Literal[JobState.CANCELLED, JobState.SUCCEEDED, JobState.FAILED]
    attempt: int
    finished_at: AwareDatetime
    status: Status | None = None
    objective: float | None = None
    warnings: list[str] = []
    report: dict[str, Any] | None = None
    """what the training estimated and chose, and on what grounds"""
    error: Problem | None = None
    progress: Progress | None = None
    """the last that was told"""
    files: dict[str, File] = {}
    """``trace`` (JSON) of whatever has begun; of a success ``model`` (safetensors), ``model_meta`` (JSON), ``labels`` (NDJSON of the documents that
    were unlabeled)"""


class Version(Record):
    """A published model: ``models/{name}/versions/{number}.json``. Numbers start at 1 and have no gaps; a job has at most one version."""

    name: str
    number: int
    job: str
    dataset: str
    algorithm: str
    options: dict[str, Any]
    classes: list[Label]
    kind: Kind = "vectors"
    """of the documents that it takes"""
    text: dict[str, int] | None = None
    """how text became terms"""
    n_features: int
    """of the training documents; of text the number of its terms"""
    facts: dict[str, str | int] = {}
    """of the model's make: its ``family`` and ``bytes``, and what else there is to tell of that family, as how many documents it keeps"""
    objective: float | None
    status: Status
    created_at: AwareDatetime
    files: dict[str, File]

    @field_validator("facts", mode="before")
    @classmethod
    def _named_as_now(cls, facts: dict[str, str | int]) -> dict[str, str | int]:
        """Earlier versions call the family of a model its kind, which is what its documents have."""
        return {"family" if name == "kind" else name: fact for name, fact in facts.items()}


class Alias(Record):
    """A name for a version: ``models/{name}/aliases/{alias}.json``; the one record that is replaced."""

    version: int
    updated_at: AwareDatetime


class Publication(Record):
    """Under which version a succeeded job was published: ``jobs/{id}/published.json``, created after the version."""

    name: str
    version: int


class Job(BaseModel):
    """A job as its records tell it."""

    request: JobRequest
    state: JobState
    attempt: int = 0
    started_at: AwareDatetime | None = None
    outcome: Outcome | None = None
    version: int | None = None
    progress: Progress = Field(default_factory=Progress)
