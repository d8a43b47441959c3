"""Rules about clocks and receivers of webhooks that the simulation takes out: see ``test_simulation.py``."""

import pytest

from app.services.webhooks.delivery import Delivery
from storage.queue.leases import Leases
from storage.repositories import webhooks
from storage.repositories.webhooks import Message, Webhooks


def leases_last_as_long_as_their_keys(patch: pytest.MonkeyPatch) -> None:
    """Of a worker that has died they stay for a day, where the clock of Redis was set back."""

    def held(self: Leases, job_id: str, attempt: int, seconds: float) -> bool:
        return self._redis.get(self._key(job_id, attempt)) is not None

    patch.setattr(Leases, "held", held)


def leases_of_attempts_that_were_never_claimed_stay(patch: pytest.MonkeyPatch) -> None:
    """They keep every worker from the next attempt."""
    revoke = Leases.revoke
    patch.setattr(Leases, "revoke", lambda self, job_id, *attempts: revoke(self, job_id, attempts[0]))


def messages_are_due_by_clocks_that_are_set(patch: pytest.MonkeyPatch) -> None:
    """One that failed while the clock was a day ahead comes a day late."""

    def note_due(self: Delivery, name: str, message: Message) -> None:
        left = (message.due_at - self._now()).total_seconds()
        self._due[name] = message.tries, self._elapsed() + max(left, 0.0)

    patch.setattr(Delivery, "_note_due", note_due)


def ends_of_jobs_are_not_noted(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told of a job."""
    patch.setattr(Webhooks, "note_end", lambda *_: None)


def claims_of_dead_senders_stay(patch: pytest.MonkeyPatch) -> None:
    """Their messages are never tried again."""
    patch.setattr(webhooks, "_TRY_SECONDS", 1e9)
