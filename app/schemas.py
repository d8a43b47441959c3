"""What goes out as JSON, by the names of the contract; and the small bodies that come in."""

from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.codecs.base import MAX_FAULTS
from core.kinds import Kind
from workers.contract import Dataset, Job, JobState, Label, Progress, Version
from workers.errors import NotFound
from workers.models import Models

Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Out(BaseModel):
    """Something that is sent."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="null")


class Fault(Out):
    """One thing that is wrong with one document or field."""

    document: str
    """its id, or its position; empty where it is not of one document"""
    field: str
    detail: str


class ProblemOut(Out):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = Field(default=[], max_length=MAX_FAULTS)


class DatasetOut(Out):
    """A sealed set of documents."""

    id: str
    name: str | None
    n_documents: int
    n_labeled: int
    kind: Kind
    """of its documents: vectors (indices), named features, or text"""
    n_features: int | None
    """null of text: a job says how it becomes terms, and its model how many there are"""
    n_nonzeros: int | None
    """null of text"""
    classes: dict[str, int]
    """each class with the number of documents labeled with it"""
    sha256: str
    """the same documents give the same digest, however they were sent"""
    created_at: AwareDatetime
    warnings: list[str]

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The record as the contract shows it."""
        fields = dataset.model_dump(include=set(cls.model_fields) - {"classes"})
        return cls(**fields, classes={str(label): count for label, count in dataset.classes})


class DatasetPage(Out):
    """Datasets, newest first."""

    datasets: list[DatasetOut]
    next_cursor: str | None
    """give it as ``cursor`` for the next page; null on the last"""


class Made(Out):
    """The version that a job has published."""

    name: str
    version: int


class JobOut(Out):
    """A training job."""

    id: str
    state: JobState
    algorithm: str
    options: dict[str, Any]
    seed: int
    text: dict[str, int] | None
    """how text becomes terms; null where the documents are none"""
    dataset: str
    start_from: Made | None
    """the version that training starts from"""
    model: Made | None
    """null until the job has succeeded"""
    model_name: str
    """the name that was asked for"""
    progress: Progress
    attempt: int
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    status: str | None
    """how the solver ended: converged, iteration_limit, …"""
    objective: float | None
    warnings: list[str]
    report: dict[str, Any] | None
    """of a success: the class fractions used; where something was left to find, what was estimated, tried and chosen, and why"""
    error: ProblemOut | None

    @classmethod
    def of(cls, job: Job) -> Self:
        """The job as the contract shows it."""
        request, outcome = job.request, job.outcome if job.state.final else None
        return cls(
            id=request.id,
            state=job.state,
            algorithm=request.algorithm,
            options=request.options,
            seed=request.seed,
            text=request.text,
            dataset=request.dataset,
            start_from=Made(name=request.start.name, version=request.start.version) if request.start else None,
            model=Made(name=request.model, version=job.version) if job.version is not None else None,
            model_name=request.model,
            progress=job.progress,
            attempt=job.attempt,
            created_at=request.created_at,
            started_at=job.started_at,
            finished_at=outcome.finished_at if outcome else None,
            status=outcome.status if outcome else None,
            objective=outcome.objective if outcome else None,
            warnings=outcome.warnings if outcome else [],
            report=outcome.report if outcome else None,
            error=ProblemOut.model_validate(outcome.error.model_dump()) if outcome and outcome.error else None,
        )


class JobPage(Out):
    """Jobs, newest first."""

    jobs: list[JobOut]
    next_cursor: str | None


class Point(Out):
    """Where a solver stood."""

    phase: str
    iteration: int
    stage_objective: float | None
    objective: float | None
    fraction: float
    seconds: float


class Trace(Out):
    """The objective by iteration; of a running job, what is known so far."""

    job: str
    points: list[Point]


class LabeledDocument(Out):
    """A line of a job's labels: a document that was unlabeled."""

    id: str
    label: Label
    score: float
    """of the second of two classes, or of the given label among more"""
    probability: float | None
    """of the given label; null where the model was not calibrated (auto does that, the others by the option probabilities)"""


class VersionOut(Out):
    """A published model; it never changes."""

    name: str
    version: int
    job: str
    dataset: str
    algorithm: str
    options: dict[str, Any]
    classes: list[Label]
    kind: Kind
    """of the documents that it takes: vectors (indices), named features, or text"""
    text: dict[str, int] | None
    """how text became terms; null where the documents are none"""
    n_features: int
    """of the training documents; of text, its terms"""
    facts: dict[str, str | int] = Field(examples=[{"family": "kernel", "kernel": "rbf", "bytes": 1843200, "n_support": 640}])
    """of its make: ``family`` (linear or kernel), ``bytes`` of its arrays and words, and by family ``n_seen_features`` or ``kernel`` and
    ``n_support``, the training documents that it keeps; of named features also ``n_names``, of text ``n_terms`` and ``n_words``"""
    objective: float | None
    status: str
    created_at: AwareDatetime

    @classmethod
    def of(cls, version: Version) -> Self:
        """The record as the contract shows it."""
        return cls(version=version.number, **version.model_dump(exclude={"number", "files"}))


class ModelOut(Out):
    """A model: its versions, oldest first, and its aliases."""

    name: str
    versions: list[VersionOut]
    aliases: dict[str, int]

    @classmethod
    def of(cls, models: Models, name: str) -> Self:
        """The model of that name; raises NotFound."""
        return cls(name=name, versions=[VersionOut.of(version) for version in models.versions(name)], aliases=models.aliases(name))


class ModelSummary(Out):
    """A model in a list."""

    name: str
    newest: int
    """number of the version that the name alone stands for"""
    aliases: dict[str, int]

    @classmethod
    def of(cls, models: Models, name: str) -> Self | None:
        """The model, or None if it was deleted meanwhile."""
        try:
            return cls(name=name, newest=models.resolve(name).number, aliases=models.aliases(name))
        except NotFound:
            return None


class ModelPage(Out):
    """Models, by name."""

    models: list[ModelSummary]
    next_cursor: str | None


class AliasOut(Out):
    """What an alias stands for now."""

    name: str
    alias: str
    version: int


class Prediction(Out):
    """Labels and scores of documents, in their order."""

    model: str
    version: int
    classes: list[Label]
    labels: list[Label]
    scores: list[list[float]]
    """a row a document; for two classes one column, for the second of ``classes``"""
    probabilities: list[list[float]] | None
    """a row a document, a column a class; null where the model was not calibrated (auto does that, the others by the option probabilities)"""
    warnings: list[str]


class Alive(Out):
    """The process answers."""

    status: str = Field(examples=["live"])


class Ready(Out):
    """The service can take work."""

    status: str = Field(examples=["ready"])
    store: bool
    redis: bool
    workers: int
    """that have lately given a sign of life; jobs wait while there is none"""


class JobBody(msgspec.Struct, forbid_unknown_fields=True):
    """What training is asked for: on a dataset, or on documents in the body."""

    model: str
    algorithm: str = "auto"
    dataset: str | None = None
    documents: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    options: dict[str, Any] = {}
    text: dict[str, Any] | None = None
    """how text becomes terms: min_documents, ngrams, max_terms; for documents that are text"""
    start_from: str | None = None
    """name or name@alias of a model to start from, as after some more labels: takes a fraction of the time; not for auto, kernel_svm or ctsvm"""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0


class LabelsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Labels to change, by document id; null takes a label away."""

    labels: dict[str, Any]
    """checked one by one, so that a refusal can say of which document"""


class AliasBody(msgspec.Struct, forbid_unknown_fields=True):
    """The version that an alias shall stand for."""

    version: Number
