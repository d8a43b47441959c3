"""Delivery: makes messages of what has ended, and sends those that are due.

Any number of gateways deliver side by side. What must not be lost lies in the store (``workers.repositories.webhooks``), so a killed gateway loses no
message; a message may come twice, with the same id.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from app.services.webhooks.sender import Sender, SendFailed
from workers.contract import Job, Version
from workers.errors import NotFound, StoreDamaged
from workers.repositories.jobs import Jobs
from workers.repositories.models import Models
from workers.repositories.webhooks import Event, Message, Waiting, Webhook, Webhooks

_DELAYS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""seconds from each failed try to the next, as Standard Webhooks propose; then a message is given up"""
_THREADS = 4
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Delivery:
    """Delivers the messages of a store."""

    def __init__(self, webhooks: Webhooks, jobs: Jobs, models: Models, sender: Sender, clock: Callable[[], float] = time.time) -> None:
        self.webhooks = webhooks
        self._jobs = jobs
        self._models = models
        self.sender = sender
        self._clock = clock
        self._due: dict[str, datetime] = {}
        """when each message is due that need not be read before"""

    def deliver(self) -> None:
        """One round. Raises StoreUnavailable; what was done until then stays done."""
        webhooks = {webhook.id: webhook for webhook in self.webhooks.every()}
        ended = self.webhooks.ended_jobs()
        if ended:
            unfinished = set(self._jobs.unfinished_ids())
            for id in ended:
                if id not in unfinished:
                    self._announce(id, list(webhooks.values()))
        now = self._now()
        self._due = {name: due for name, due in self._due.items() if due > now}
        waiting = list(self.webhooks.waiting(but=self._due))
        if waiting:
            with ThreadPoolExecutor(_THREADS, "webhooks") as threads:
                list(threads.map(lambda each: self._try(each, webhooks.get(each.message.webhook)), waiting))

    def _announce(self, id: str, webhooks: list[Webhook]) -> None:
        try:
            job = self._jobs.get(id)
        except (NotFound, StoreDamaged):
            self.webhooks.put(id, [])
            return
        events = list(self._events(job))
        messages = [
            (event, Message(webhook=webhook.id, id=f"{id}.{event}", body=body, due_at=self._now()))
            for event, body in events
            for webhook in webhooks
            if event in webhook.events
        ]
        self.webhooks.put(id, messages)

    def _events(self, job: Job) -> Iterator[tuple[Event, str]]:
        outcome, request = job.outcome, job.request
        assert outcome is not None, "the job has ended"
        at = outcome.finished_at
        made = None if job.version is None else {"name": request.model, "version": job.version}
        error = None if outcome.error is None else outcome.error.model_dump(mode="json")
        facts = {"job": request.id, "state": job.state.value, "dataset": request.dataset, "model_name": request.model, "model": made, "error": error}
        yield "job.ended", _body("job.ended", at, facts)
        if job.version is not None:
            version = self._find_version(request.model, job.version)
            if version is not None:
                yield "version.published", _body("version.published", version.created_at, _facts_of(version))

    def _find_version(self, name: str, number: int) -> Version | None:
        try:
            return self._models.version(name, number)
        except (NotFound, StoreDamaged):
            return None

    def _try(self, waiting: Waiting, webhook: Webhook | None) -> None:
        name, message = waiting
        if webhook is None:
            self.webhooks.remove(name)
            return
        if message.due_at > self._now():
            self._due[name] = message.due_at
            return
        if not self.webhooks.claim(waiting):
            return
        try:
            self.sender.send(webhook.url, webhook.secret, message.id, message.body.encode(), int(self._clock()))
        except SendFailed as error:
            self._fail(name, message, webhook, str(error))
        else:
            self.webhooks.remove(name)

    def _fail(self, name: str, message: Message, webhook: Webhook, error: str) -> None:
        gone = error.endswith(" 410")
        if gone or message.tries >= len(_DELAYS):
            _log.warning("a webhook was given up", webhook=webhook.id, url=webhook.url, message=message.id, error=error)
            if gone:
                self.webhooks.delete(webhook.id)
            self.webhooks.remove(name)
            return
        due = self._now() + timedelta(seconds=_DELAYS[message.tries])
        self.webhooks.replace(name, message.model_copy(update={"tries": message.tries + 1, "due_at": due, "error": error}))
        self._due[name] = due
        _log.info("a webhook failed", webhook=webhook.id, url=webhook.url, message=message.id, error=error, due_at=due.isoformat())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _body(event: Event, at: datetime, data: dict[str, Any]) -> str:
    return json.dumps({"type": event, "timestamp": at.isoformat(), "data": data}, ensure_ascii=False)


def _facts_of(version: Version) -> dict[str, Any]:
    return {"model": version.name, "version": version.number, "job": version.job, "dataset": version.dataset, "takes_over": version.takes_over}
