"""Delivery: makes messages of events, and sends the messages that are due.

Any number of gateways deliver side by side. What must not be lost lies in the store
(``storage.repositories.webhooks``), so a killed gateway loses no message; a message may come twice, with the same id.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from app.services.webhooks.sender import Sender, SendFailed
from storage.errors import NotFound, StoreDamaged
from storage.records import Job, Outcome
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.repositories.webhooks import Event, Message, Waiting, Webhook, Webhooks

_DELAYS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""seconds from each failed try to the next, as Standard Webhooks propose; then a message is given up"""
_MAX_TRIES = len(_DELAYS) + 1
_MAX_WAITING = 1000
"""messages that wait for a webhook, beyond which it is told of nothing more"""
_THREADS = 4
_ROUND_SECONDS, _RECEIVER_SECONDS = 1.0, 2.0
"""seconds that a round waits for receivers, and after which one gives way to others: so a message waits for no more
than one call of each slow receiver, a quarter of them at a time"""
_GONE = 410
"""status of a receiver that wants no more messages"""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Delivery:
    """Delivers the messages of a store."""

    def __init__(
        self,
        webhooks: Webhooks,
        jobs: Jobs,
        models: Models,
        sender: Sender,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.webhooks = webhooks
        self._jobs = jobs
        self._models = models
        self.sender = sender
        self._clock = clock
        self._elapsed = elapsed
        self._threads = ThreadPoolExecutor(_THREADS, "webhooks")
        self._running: dict[str, Future[None]] = {}
        """tries that are under way, by the id of their webhook"""
        self._due: dict[str, tuple[int, float]] = {}
        """how often each message was tried that is not due, and when it is due by a clock that nobody sets"""

    def deliver(self) -> None:
        """One round, which waits for no receiver that is slow: that one is left out until its tries have ended.

        Raises StoreUnavailable; what was done until then stays done.
        """
        webhooks = {webhook.id: webhook for webhook in self.webhooks.every()}
        ended = self.webhooks.ended_jobs()
        if ended:
            unfinished = set(self._jobs.unfinished_ids())
            waiting = self.webhooks.waiting()
            full = [id for id in webhooks if len(waiting.get(id, ())) >= _MAX_WAITING]
            for id in full:
                _log.warning(
                    "a webhook is told of nothing more until its messages are delivered or given up",
                    webhook=id,
                    waiting=len(waiting[id]),
                )
            listening = [webhook for id, webhook in webhooks.items() if id not in full]
            for id in ended:
                if id not in unfinished:
                    self._announce(id, listening)
        messages, now = self.webhooks.waiting(), self._elapsed()
        every = {name for names in messages.values() for name in names}
        self._due = {name: due for name, due in self._due.items() if name in every}
        to_try = {
            id: due
            for id, names in messages.items()
            if (due := [name for name in names if name not in self._due or self._due[name][1] <= now])
        }
        for id, names in to_try.items():
            if id not in self._running:
                self._running[id] = self._threads.submit(self._try_all, id, webhooks.get(id), names)
        done, _ = wait(self._running.values(), _ROUND_SECONDS)
        self._running = {id: running for id, running in self._running.items() if running not in done}
        for running in done:
            running.result()

    def close(self) -> None:
        """Begin no other try."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _announce(self, id: str, webhooks: list[Webhook]) -> None:
        try:
            job = self._jobs.get(id)
        except (NotFound, StoreDamaged):
            self.webhooks.put(id, [])
            return
        if job.outcome is None:  # it was deleted, and a request that came late has made it anew until it is withdrawn
            return
        events = list(self._events(job, job.outcome))
        messages = [
            (event, Message(webhook=webhook.id, id=f"{id}.{event}", body=body, due_at=self._now()))
            for event, body in events
            for webhook in webhooks
            if event in webhook.events
        ]
        self.webhooks.put(id, messages)

    def _events(self, job: Job, outcome: Outcome) -> Iterator[tuple[Event, str]]:
        at, request = outcome.finished_at, job.request
        made = None if job.version is None else {"name": request.model, "version": job.version}
        error = None if outcome.error is None else outcome.error.model_dump(mode="json")
        facts = {
            "job": request.id,
            "state": job.state.value,
            "dataset": request.dataset,
            "model_name": request.model,
            "model": made,
            "error": error,
        }
        yield "job.ended", _body("job.ended", at, facts)
        if job.version is not None:
            with suppress(NotFound, StoreDamaged):
                version = self._models.version(request.model, job.version)
                published = {
                    "model": version.name,
                    "version": version.number,
                    "job": version.job,
                    "dataset": version.dataset,
                    "takes_over": version.takes_over,
                }
                yield "version.published", _body("version.published", version.created_at, published)

    def _try_all(self, id: str, webhook: Webhook | None, names: Sequence[str]) -> None:
        """Try the messages due for a webhook, one after the other, while the budget of a receiver lasts.

        A receiver that cannot be asked once is asked no more in this round: its other messages fail as the first did.
        """
        if webhook is None:
            # a record that is damaged may be restored; a webhook may be newer than the list of this round
            if not self.webhooks.exists(id):
                self.webhooks.remove_all(id)
            return
        failure: SendFailed | None = None
        end = self._elapsed() + _RECEIVER_SECONDS
        for name in names:
            if self._elapsed() > end:
                break
            message = self.webhooks.message(name)
            if message is not None:
                failure = self._try(Waiting(name, message), webhook, failure)

    def _try(self, waiting: Waiting, webhook: Webhook, earlier: SendFailed | None) -> SendFailed | None:
        """Try a message if it is due and no other process does; returns why the receiver cannot be asked, None if it
        can.
        """
        name, message = waiting
        if self._due.get(name, (-1, 0.0))[0] != message.tries:
            self._note_due(name, message)
        if self._due[name][1] > self._elapsed():
            return earlier
        if message.tries >= _MAX_TRIES:
            self._give_up(waiting, webhook, str(message.error))
        elif self.webhooks.begin_try(waiting):
            try:
                if earlier is not None:
                    raise earlier
                self.sender.send(webhook.url, webhook.secret, message.id, message.body.encode(), int(self._clock()))
            except SendFailed as failure:
                self._fail(waiting, webhook, failure)
                return failure if failure.status is None else None
            self.webhooks.remove(waiting)
        return earlier

    def _fail(self, waiting: Waiting, webhook: Webhook, failure: SendFailed) -> None:
        name, message = waiting
        tries, error = message.tries + 1, str(failure)
        if failure.status == _GONE or tries >= _MAX_TRIES:
            self._give_up(waiting, webhook, error)
            if failure.status == _GONE:
                self.webhooks.delete(webhook.id)
            return
        due = self._now() + timedelta(seconds=_DELAYS[message.tries])
        failed = message.model_copy(update={"tries": tries, "due_at": due, "error": error})
        self.webhooks.replace(name, failed)
        self._note_due(name, failed)
        _log.info("a webhook failed", webhook=webhook.id, message=message.id, error=error, due_at=due.isoformat())

    def _note_due(self, name: str, message: Message) -> None:
        """Note when a message is due: after no more than its own delay, whatever the clocks of others say, or said."""
        delay = (0, *_DELAYS, 0)[message.tries]
        left = (message.due_at - self._now()).total_seconds()
        self._due[name] = message.tries, self._elapsed() + min(max(left, 0.0), delay)

    def _give_up(self, waiting: Waiting, webhook: Webhook, error: str) -> None:
        # no log has the address: that of many receivers is a secret
        _log.warning("a message of a webhook was given up", webhook=webhook.id, message=waiting.message.id, error=error)
        self.webhooks.remove(waiting)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _body(event: Event, at: datetime, data: dict[str, Any]) -> str:
    return json.dumps({"type": event, "timestamp": at.isoformat(), "data": data}, ensure_ascii=False)
