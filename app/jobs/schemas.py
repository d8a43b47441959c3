"""Schemas of jobs, and of the bodies of their calls."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self, TypeVar, cast

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime, BaseModel

from app.codecs.json_documents.document import ShortText
from app.http.schemas import Page, ProblemOut, RecordSchema, Schema
from storage.records import Comparison, Job, JobSpec, JobState, Progress, Publication

B = TypeVar("B", bound=msgspec.Struct)


class Made(Publication, RecordSchema):
    """A version of a model."""


class _Identity(RecordSchema):
    """Id and state of a job."""

    id: str
    state: JobState


class JobOut(JobSpec, _Identity):
    """A training job."""

    start_from: Made | None
    """Version that training starts from."""
    model: Made | None
    """Version that the job has published; null until it has succeeded."""
    model_name: str
    """Name of the model that the job trains."""
    progress: Progress
    attempt: int
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    status: str | None
    """Status of the solver: converged, iteration_limit, …"""
    objective: float | None
    warnings: list[str]
    report: dict[str, Any] | None
    """Report of a succeeded job: the class fractions; what was estimated, tried and chosen, and why; the engines that
    found the terms of text and read the documents."""
    comparison: Comparison | None
    """Comparison of the new version with the one that was served, and whether it takes over; null until the job has
    succeeded."""
    error: ProblemOut | None

    @classmethod
    def of(cls, job: Job) -> Self:
        """The job in the form of the contract."""
        request, outcome = job.request, job.outcome if job.state.final else None
        # each time is by the clock of another process, which may have been set back
        started_at = max(job.started_at, request.created_at) if job.started_at else None
        return cls(
            **{name: getattr(request, name) for name in JobSpec.model_fields},
            id=request.id,
            state=job.state,
            start_from=Made(name=request.start.name, version=request.start.version) if request.start else None,
            model=Made(name=request.model, version=job.version) if job.version is not None else None,
            model_name=request.model,
            progress=job.progress,
            attempt=job.attempt,
            created_at=request.created_at,
            started_at=started_at,
            finished_at=max(outcome.finished_at, started_at or request.created_at) if outcome else None,
            status=outcome.status if outcome else None,
            objective=outcome.objective if outcome else None,
            warnings=outcome.warnings if outcome else [],
            report=outcome.report if outcome else None,
            comparison=outcome.comparison if outcome else None,
            error=ProblemOut.model_validate(outcome.error.model_dump()) if outcome and outcome.error else None,
        )


class JobPage(Page):
    """A page of jobs, newest first."""

    jobs: list[JobOut]


class Point(Schema):
    """The state of a solver after an iteration."""

    phase: str
    """Path of the phase, such as `class=sport/tsvm/stage=3`"""
    iteration: int
    stage_objective: float | None
    objective: float | None
    fraction: float
    seconds: float


class Trace(Schema):
    """The objective by iteration; of a running job, so far."""

    job: str
    points: list[Point]


def _with_fields_of(spec: type[BaseModel]) -> Callable[[type[B]], type[B]]:
    """A decorator that adds to a body the fields of a spec which it does not have itself."""

    def extended(body: type[B]) -> type[B]:
        fields = []
        for name, field in spec.model_fields.items():
            if name not in body.__struct_fields__:
                bounds = {key: getattr(bound, key) for bound in field.metadata for key in bound.__slots__}
                fields.append((name, Annotated[field.annotation, Meta(**bounds)], field.default))
        return cast(
            "type[B]",
            msgspec.defstruct(
                body.__name__,
                fields,
                bases=(body,),
                module=body.__module__,
                namespace={"__doc__": body.__doc__},
                forbid_unknown_fields=True,
            ),
        )

    return extended


@_with_fields_of(JobSpec)
class JobBody(msgspec.Struct, forbid_unknown_fields=True):
    """A training job, on a dataset or on documents in the body."""

    # beside the fields of the spec: those that its record has in another form
    model: str
    algorithm: str = "auto"
    other: ShortText | int | None = None
    dataset: str | None = None
    documents: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    options: dict[str, Any] = {}
    text: dict[str, Any] | None = None
    """Options of how text becomes terms: min_documents, ngrams, max_terms; only for documents that are text."""
    start_from: str | None = None
    """Model to start from, as name or name@alias."""
    annotations: Literal["latest"] | Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """What people did with the documents, in the log of the dataset: the first so many entries, or those that are there
    now (latest). Their labels count in place of those of the dataset."""
    nested: bool = False
    """Whether labels with steps, such as sport/football, are a tree: answers then go as deep as they are sure."""
    encoder: str | msgspec.UnsetType | None = msgspec.UNSET
    """Pre-trained encoder of this installation, by name. It makes a vector of each text, a part beside the text, and
    the model reads texts by it. Left out, it is the default one, if the documents are text and bring no vector, or that
    of the model to start from; null: the text alone."""
