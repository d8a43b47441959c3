"""What the owner of a job is told when it fails."""

from core.errors import HalfmoonError, InvalidDocuments, InvalidOption, UnknownAlgorithm
from workers.contract import Problem
from workers.errors import NotFound


def problem_of(error: Exception) -> Problem:
    """What the owner of a job is told about an error; what only an operator can use is logged instead."""
    match error:
        case InvalidDocuments():
            faults = [{str(name): value for name, value in fault._asdict().items()} for fault in error.faults]
            return problem("invalid-documents", "The documents cannot be used", 422, str(error), faults)
        case InvalidOption():
            faults = [{"document": "", "field": f"options.{error.field}", "detail": error.detail}]
            return problem("invalid-option", "An option is not valid", 422, str(error), faults)
        case UnknownAlgorithm():
            return problem("unknown-algorithm", "There is no such algorithm", 422, str(error))
        case NotFound():
            return problem("not-found", "Not found", 404, str(error))
        case MemoryError():
            return problem("out-of-memory", "The worker has too little memory", 500, "the job needs more memory than the worker has")
        case HalfmoonError():
            return problem("training-failed", "The training failed", 500, str(error))
    return problem("internal", "The training failed", 500, f"the training ended with {type(error).__name__}; it has been logged")


def problem(kind: str, title: str, status: int, detail: str, errors: list[dict[str, str]] | None = None) -> Problem:
    """A problem of one of our kinds."""
    return Problem(type=f"/problems/{kind}", title=title, status=status, detail=detail, errors=errors or [])
