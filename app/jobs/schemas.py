"""Jobs by the names of the contract, and the bodies of their calls."""

from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime

from app.http.schemas import ProblemOut, Schema
from workers.contract import Job, JobState, Progress


class Made(Schema):
    """The version that a job has published."""

    name: str
    version: int


class JobOut(Schema):
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


class JobPage(Schema):
    """Jobs, newest first."""

    jobs: list[JobOut]
    next_cursor: str | None


class Point(Schema):
    """Where a solver stood."""

    phase: str
    """path of the phase, such as `class=sport/tsvm/stage=3`"""
    iteration: int
    stage_objective: float | None
    objective: float | None
    fraction: float
    seconds: float


class Trace(Schema):
    """The objective by iteration; of a running job, what is known so far."""

    job: str
    points: list[Point]


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
