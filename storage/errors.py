"""Errors of the store, the queue and the repositories, under ``core.errors.HalfmoonError``.

HalfmoonError
├── NotFound             no such dataset, job, model, version or alias
├── Conflict             the present state forbids it
│   ├── IdempotencyConflict  the key was used with another request
│   └── JobDeleted           the job of the key was deleted
├── InvalidName          the name is not allowed
├── LimitExceeded        more documents, features, … than the settings allow
├── OutOfRange           the numbers of a training are not finite
├── JobTooLarge          the training would need more memory than the worker has
├── QuotaExceeded        the store may not hold more datasets, or bytes of them
└── Unavailable          a part of the service does not answer; a retry may help
    ├── StoreUnavailable
    │   ├── StoreFull        there is no room
    │   └── StoreDamaged     a record or file is not what was stored; a retry does not help
    ├── ClusterUnavailable
    └── RedisUnavailable
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import Fault, HalfmoonError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WHERE_ALL_ARE = {
    **{kind: f"; the list of {kind}s has all" for kind in ("dataset", "job", "model", "webhook")},
    **dict.fromkeys(("model version", "model alias"), "; the model lists all that it has"),
}
_NAMED_OTHERWISE = "; a dataset goes by the id that its upload answered, as in ds-06h0…"


class NotFound(HalfmoonError):
    """No such dataset, job, model, version or alias exists, or exists any more."""

    def __init__(self, kind: str, id: str) -> None:
        remedy = _NAMED_OTHERWISE if kind == "dataset" and not id.startswith("ds-") else _WHERE_ALL_ARE.get(kind, "")
        super().__init__(f"there is no {kind} {id!r}{remedy}")


class Conflict(HalfmoonError):
    """The request contradicts the present state."""


class IdempotencyConflict(Conflict):
    """The idempotency key was used before, with another request."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used with a different request")


class JobDeleted(Conflict):
    """The job of an idempotency key was deleted."""

    def __init__(self, id: str) -> None:
        super().__init__(f"job {id!r} has this idempotency key and was deleted; a new job needs a new key")
        self.id = id


class InvalidName(HalfmoonError):
    """The name of a model, dataset or alias is not allowed."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f"{what} {name!r:.200}: 1 to 128 characters in a line, without spaces around them"
            if what == "dataset"
            else f"{what} {name!r}: 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit"
        )


class LimitExceeded(HalfmoonError):
    """More documents, features, … than the settings allow."""

    def __init__(self, what: str, limit: int, remedy: str = "") -> None:
        super().__init__(f"more than {limit} {what}{'; ' + remedy if remedy else ''}")
        self.what = what
        self.limit = limit
        self.remedy = remedy


class OutOfRange(HalfmoonError):
    """The numbers of a training are not finite, so there is no model."""

    def __init__(self, detail: str, largest: Fault | None) -> None:
        super().__init__(detail)
        self.largest = largest
        """the document with the largest value, if that may be why"""


class JobTooLarge(HalfmoonError):
    """The training would need more memory than the worker has."""

    def __init__(self, needed: int, most: int, remedy: str) -> None:
        super().__init__(
            f"the training would need up to {needed / 2**20:.0f} MiB of memory, and a job may have "
            f"{most / 2**20:.0f} MiB here: {remedy}"
        )


class QuotaExceeded(HalfmoonError):
    """The store holds as much as it may. Something must be deleted first."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"there may be no more than {most} {what} here; delete some that are not needed")


class Unavailable(HalfmoonError):
    """A part of the service does not answer. Nothing is known to be lost."""


class StoreUnavailable(Unavailable):
    """The store cannot be read or written."""


class StoreFull(StoreUnavailable):
    """The store has no room."""


class StoreDamaged(StoreUnavailable):
    """A stored record or file has changed. A retry does not help."""

    def __init__(self, key: str, detail: str = "its checksum is not the recorded one") -> None:
        super().__init__(f"{key} is damaged: {detail}")
        self.key = key


class ClusterUnavailable(Unavailable):
    """The cluster that a training was shared with does not answer, or has lost it."""


class RedisUnavailable(Unavailable):
    """Redis does not answer: queue, progress, leases, cancel flags and heartbeats cannot be read or written."""


class CannotStart(HalfmoonError):
    """The service cannot be started; the text names the remedy."""


@contextmanager
def translate_os_errors(verb: str, what: str) -> Iterator[None]:
    """Raise StoreUnavailable, or StoreFull, for any OSError inside the block or the function that this decorates:
    "cannot {verb} {what}: …".
    """
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in _FULL else StoreUnavailable
        raise kind(f"cannot {verb} {what}: {error.strerror or error}") from error
