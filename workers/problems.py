"""How errors are told to those who cannot read a log: the one table from errors to problems, as RFC 9457 has them."""

from collections.abc import Mapping
from typing import NamedTuple

from core.errors import HalfmoonError, InvalidDocuments, InvalidOption, ModelTooLarge, UnknownAlgorithm
from workers import errors
from workers.contract import Problem


class Kind(NamedTuple):
    """What all problems of one kind have in common; ``status`` is HTTP's."""

    status: int
    type: str
    title: str


NUMERICAL_ERROR = Kind(422, "numerical-error", "The numbers ran out of range")
TIMED_OUT = Kind(504, "timed-out", "The job took too long")
WORKER_DIED = Kind(500, "worker-died", "The worker died")
KINDS: Mapping[type[Exception], Kind] = {
    InvalidDocuments: Kind(422, "invalid-documents", "The documents cannot be used"),
    InvalidOption: Kind(422, "invalid-option", "An option is not valid"),
    ModelTooLarge: Kind(413, "model-too-large", "The model would be larger than models may be here"),
    UnknownAlgorithm: Kind(422, "unknown-algorithm", "There is no such algorithm"),
    errors.InvalidName: Kind(422, "invalid-name", "The name is not allowed"),
    errors.IdempotencyConflict: Kind(422, "idempotency-conflict", "The idempotency key was used for another request"),
    errors.LimitExceeded: Kind(413, "limit-exceeded", "More than this installation takes"),
    errors.JobTooLarge: Kind(413, "job-too-large", "The training would need more memory than there is"),
    errors.QuotaExceeded: Kind(507, "quota-exceeded", "The store holds as much as it may"),
    errors.NotFound: Kind(404, "not-found", "Not found"),
    errors.Conflict: Kind(409, "conflict", "The present state forbids it"),
    errors.StoreFull: Kind(507, "insufficient-storage", "The store has no room left"),
    errors.StoreDamaged: Kind(503, "damaged", "A stored file is damaged"),
    errors.Unavailable: Kind(503, "unavailable", "A part of the service does not answer"),
    MemoryError: Kind(500, "out-of-memory", "The worker has too little memory"),
    Exception: Kind(500, "internal", "The service failed"),
}


def kind_of(error: Exception, kinds: Mapping[type[Exception], Kind] = KINDS) -> Kind:
    """The row of the error's nearest class."""
    return next(kinds[ancestor] for ancestor in type(error).__mro__ if ancestor in kinds)


def named_by(error: Exception) -> list[dict[str, str]]:
    """The documents or fields that an error names."""
    match error:
        case InvalidDocuments():
            return [fault._asdict() for fault in error.faults]
        case InvalidOption():
            return [{"document": "", "field": f"options.{error.field}", "detail": error.detail}]
        case UnknownAlgorithm():
            return [{"document": "", "field": "algorithm", "detail": str(error)}]
    return []


def problem_of(error: Exception) -> Problem:
    """What the owner of a job is told about an error; what only an operator can use is logged instead."""
    return problem(kind_of(error), _detail(error), named_by(error))


def problem(kind: Kind, detail: str, named: list[dict[str, str]] | None = None) -> Problem:
    """A problem of one of our kinds."""
    return Problem(type=f"/problems/{kind.type}", title=kind.title, status=kind.status, detail=detail, errors=named or [])


def _detail(error: Exception) -> str:
    match error:
        case HalfmoonError():
            return str(error)
        case MemoryError():
            return "the job needs more memory than the worker has"
    return f"the training ended with {type(error).__name__}; it has been logged"
