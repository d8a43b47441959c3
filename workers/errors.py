"""What storing, queueing and publishing refuse or fail at, under ``core.errors.HalfmoonError``.

HalfmoonError
├── NotFound             no such dataset, job, model, version or alias
├── Conflict             the state of things forbids it
│   ├── JobNotCancellable    the job is final or already being cancelled
│   ├── JobNotFinished       the job is not over
│   └── IdempotencyConflict  the key was used with another request
├── InvalidName          a name that is not allowed
├── LimitExceeded        more documents, features, … than configured
├── JobTooLarge          a training would need more memory than the worker has
├── QuotaExceeded        the store may not have more datasets, or bytes of them
└── Unavailable          a part of the service does not answer; trying again later may help
    ├── StoreUnavailable
    │   ├── StoreFull        there is no room for what was to be stored
    │   └── StoreDamaged     what was stored is not what is there
    ├── QueueUnavailable
    └── RedisStateUnavailable
"""

from core.errors import HalfmoonError


class NotFound(HalfmoonError):
    """There is no such thing, or no longer."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"there is no {kind} {id!r}")
        self.kind = kind
        self.id = id


class Conflict(HalfmoonError):
    """What was asked for contradicts the present state of things."""


class JobNotCancellable(Conflict):
    """The job has ended or is being cancelled already."""

    def __init__(self, id: str, state: str) -> None:
        super().__init__(f"job {id!r} is {state}")
        self.id = id
        self.state = state


class JobNotFinished(Conflict):
    """The job is not over, so it cannot be deleted."""

    def __init__(self, id: str, state: str) -> None:
        super().__init__(f"job {id!r} is {state}; it can be deleted when it is over")
        self.id = id
        self.state = state


class IdempotencyConflict(Conflict):
    """The idempotency key was used before, with a different request."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used with a different request")
        self.key = key


class InvalidName(HalfmoonError):
    """A name of a model, dataset or alias that is not allowed."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} {name!r}: 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit")
        self.what = what
        self.name = name


class LimitExceeded(HalfmoonError):
    """More than this installation is configured to take."""

    def __init__(self, what: str, limit: int, remedy: str = "") -> None:
        super().__init__(f"more than {limit} {what}{'; ' + remedy if remedy else ''}")
        self.what = what
        self.limit = limit


class JobTooLarge(HalfmoonError):
    """A training would need more memory than the worker has."""

    def __init__(self, needed: int, most: int, remedy: str) -> None:
        super().__init__(
            f"the training would need up to {needed / 2**20:.0f} MiB of memory, and a job may have {most / 2**20:.0f} MiB here: {remedy}"
        )
        self.needed = needed
        self.most = most


class QuotaExceeded(HalfmoonError):
    """The store holds as much as it may; something must be deleted first."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"there may be no more than {most} {what} here; delete some that are not needed")
        self.what = what
        self.most = most


class Unavailable(HalfmoonError):
    """A part of the service does not answer; nothing is known to be lost."""


class StoreUnavailable(Unavailable):
    """The store cannot be read or written."""


class StoreFull(StoreUnavailable):
    """The store has no room for what was to be written."""


class StoreDamaged(StoreUnavailable):
    """A file is not what was stored: waiting does not help."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is damaged: its checksum is not the recorded one")
        self.key = key


class QueueUnavailable(Unavailable):
    """The queue does not answer."""


class RedisStateUnavailable(Unavailable):
    """Progress, leases and cancel flags cannot be reached."""


class CannotStart(HalfmoonError):
    """The service cannot be started as asked; the text says what to mend."""
