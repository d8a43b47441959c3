"""Problems with which a job can fail, as its outcome records them: one table from errors to problem types of RFC 9457.

``app.errors`` adds the problems of requests, which no record holds, and answers with all of them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.errors import Fault, HalfmoonError, InvalidDocuments, InvalidOption, ModelTooLarge, UnknownAlgorithm
from storage import errors
from storage.records import Failure


class ProblemType(NamedTuple):
    """A problem type of RFC 9457."""

    status: int
    """member of the stored problem, as of every problem of RFC 9457; nothing in this package reads it"""
    type: str
    title: str


TIMED_OUT = ProblemType(504, "timed-out", "The job took too long")
WORKER_DIED = ProblemType(500, "worker-died", "The worker died")
JOB_PROBLEM_TYPES: Mapping[type[Exception], ProblemType] = {
    InvalidDocuments: ProblemType(422, "invalid-documents", "The documents cannot be used"),
    InvalidOption: ProblemType(422, "invalid-option", "An option is not valid"),
    ModelTooLarge: ProblemType(413, "model-too-large", "The model would be larger than models may be here"),
    UnknownAlgorithm: ProblemType(422, "unknown-algorithm", "There is no such algorithm"),
    errors.JobTooLarge: ProblemType(413, "job-too-large", "The training would need more memory than there is"),
    errors.OutOfRange: ProblemType(422, "numerical-error", "The numbers ran out of range"),
    errors.NotFound: ProblemType(404, "not-found", "Not found"),
    errors.StoreFull: ProblemType(507, "insufficient-storage", "The store has no room left"),
    errors.StoreDamaged: ProblemType(503, "damaged", "A stored file is damaged"),
    MemoryError: ProblemType(500, "out-of-memory", "The worker has too little memory"),
    Exception: ProblemType(500, "internal", "The service failed"),
}
"""Problem type of every error that can end a job, by class."""


def problem_type_of(error: Exception, types: Mapping[type[Exception], ProblemType] = JOB_PROBLEM_TYPES) -> ProblemType:
    """The problem type of the error's nearest class that has one."""
    return next(types[ancestor] for ancestor in type(error).__mro__ if ancestor in types)


def faults_of(error: Exception) -> list[dict[str, str]]:
    """The documents or fields that an error names."""
    found: Sequence[Fault] = ()
    match error:
        case InvalidDocuments():
            found = error.faults
        case errors.OutOfRange(largest=Fault() as largest):
            found = [largest]
        case InvalidOption():
            found = [Fault("", f"options.{error.field}", error.detail)]
        case UnknownAlgorithm():
            found = [Fault("", "algorithm", str(error))]
    return [
        {**each._asdict(), "document": str(each.document)} | ({"place": each.place} if each.place else {})
        for each in found
    ]


def problem_of(error: Exception) -> Failure:
    """The problem of an error, for the owner of a job. Details for operators are logged instead."""
    return problem(problem_type_of(error), _detail(error), faults_of(error))


def problem(kind: ProblemType, detail: str, named: list[dict[str, str]] | None = None) -> Failure:
    """A problem of a type, with its detail and the documents or fields that it names."""
    return Failure(
        type=f"/problems/{kind.type}", title=kind.title, status=kind.status, detail=detail, errors=named or []
    )


def _detail(error: Exception) -> str:
    match error:
        case HalfmoonError():
            return str(error)
        case MemoryError():
            return "the job needs more memory than the worker has"
    return f"the training ended with {type(error).__name__}; it has been logged"
