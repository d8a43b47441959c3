"""Webhooks: addresses that are told of events, and the messages that wait to be delivered.

webhooks/{id}.json                      the address, its events and its secret, by which messages are signed
outbox/{job}                            the end of this job is to be announced; created before its outcome, removed when
                                        its messages exist
outbox/{job}.{event}.{webhook}.json     a message; replaced after each try, removed when it is delivered or given up
outbox/{job}.{event}.{webhook}.{n}.try  try n of a message has begun; of many processes one creates it
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pydantic import AwareDatetime

from storage.errors import NotFound
from storage.names import is_id, new_id
from storage.records import Record
from storage.repositories.sightings import Sightings
from storage.store import Store, json_records

Event = Literal["job.ended", "version.published"]
EVENTS: tuple[Event, ...] = ("job.ended", "version.published")
_RECORD, _TRY = ".json", ".try"
_TRY_SECONDS = 60.0
"""seconds for which the mark of a try must have been seen before the process that made it counts as dead"""


class WebhookFacts(Record):
    """A webhook without its secret."""

    id: str
    url: str
    events: list[Event]
    created_at: AwareDatetime


class Webhook(WebhookFacts):
    """A webhook: ``webhooks/{id}.json``."""

    secret: str


class Message(Record):
    """A message that is not delivered yet."""

    webhook: str
    id: str
    """the same for all tries, by which a receiver knows a message that comes twice"""
    body: str
    tries: int = 0
    due_at: AwareDatetime
    """by the clock of the process that tried it last"""
    error: str | None = None
    """why the last try failed"""


class Waiting(NamedTuple):
    """A message and its name in the outbox."""

    name: str
    message: Message


class Webhooks:
    """The webhooks of a store, and its outbox."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, Webhook] = {}
        self._sightings = Sightings()

    def create(self, url: str, events: Iterable[Event], secret: str) -> Webhook:
        """A new webhook."""
        webhook = Webhook(
            id=new_id("webhook"), url=url, events=list(events), secret=secret, created_at=datetime.now(UTC)
        )
        json_records.create(self._store, f"webhooks/{webhook.id}{_RECORD}", webhook)
        return webhook

    def every(self) -> list[Webhook]:
        """All webhooks that can be read, oldest first. The record of each is read once."""
        return [
            found
            for name in self._store.children("webhooks")
            if (found := self._find(name.removesuffix(_RECORD))) is not None
        ]

    def delete(self, id: str) -> None:
        """Delete a webhook, and the messages that wait for it. Raises NotFound."""
        key = f"webhooks/{id}{_RECORD}"
        if not is_id("webhook", id) or not self._store.exists(key):
            raise NotFound("webhook", id)
        self._store.delete(key)
        self._read.pop(id, None)
        self.remove_all(id)

    def exists(self, id: str) -> bool:
        """Whether there is a webhook, with a readable record or not."""
        return self._store.exists(f"webhooks/{id}{_RECORD}")

    def remove_all(self, id: str) -> None:
        """Remove the messages that wait for a webhook, and the marks of their tries."""
        for name in self._names():
            if name.endswith((f".{id}{_RECORD}", _TRY)) and f".{id}." in name:
                self._store.delete(f"outbox/{name}")

    def note_end(self, job: str) -> None:
        """Note that the end of a job is to be announced, if there is a webhook and no outcome.

        To be called before the outcome is created.
        """
        if self._store.children("webhooks") and not self._store.exists(f"jobs/{job}/outcome.json"):
            self._store.create(f"outbox/{job}", b"")

    def ended_jobs(self) -> list[str]:
        """Ids of the jobs that are to be announced when they end."""
        return [name for name in self._names() if is_id("job", name)]

    def put(self, job: str, messages: Iterable[tuple[Event, Message]]) -> None:
        """Store the messages of a job, which is then announced. Idempotent."""
        for event, message in messages:
            json_records.create(self._store, f"outbox/{job}.{event}.{message.webhook}{_RECORD}", message)
        self._store.delete(f"outbox/{job}")

    def waiting(self) -> dict[str, list[str]]:
        """The names of the messages that wait, oldest first, by the id of their webhook.

        Marks of tries whose message has gone were left by a process that was killed, and are removed after a while.
        """
        found: dict[str, list[str]] = {}
        names = set(self._names())
        for name in sorted(names):
            if name.endswith(_RECORD):
                message = name.removesuffix(_RECORD)
                found.setdefault(message.rpartition(".")[2], []).append(message)
            elif name.endswith(_TRY):
                message = name.removesuffix(_TRY).rpartition(".")[0]
                if f"{message}{_RECORD}" not in names and self._sightings.seconds(name) > _TRY_SECONDS:
                    self._store.delete(f"outbox/{name}")
        return found

    def message(self, name: str) -> Message | None:
        """A message as it is now, None if there is none that can be read."""
        return json_records.find_readable(self._store, f"outbox/{name}{_RECORD}", Message)

    def begin_try(self, waiting: Waiting) -> bool:
        """Begin the next try of a message: whether this process is to make it.

        A try whose process has died counts as one that failed.
        """
        number = waiting.message.tries + 1
        key = f"outbox/{waiting.name}.{number}{_TRY}"
        if self._store.create(key, b""):
            # another process may have delivered the message, and removed its marks, since it was read
            return self.message(waiting.name) == waiting.message
        if self._sightings.seconds(key) > _TRY_SECONDS:
            failed = {"tries": number, "due_at": datetime.now(UTC), "error": "the sender died"}
            self.replace(waiting.name, waiting.message.model_copy(update=failed))
        return False

    def replace(self, name: str, message: Message) -> None:
        """Store a message after a try."""
        self._store.replace(f"outbox/{name}{_RECORD}", json_records.encode(message))

    def remove(self, waiting: Waiting) -> None:
        """Remove a message, delivered or given up, and the marks of its tries."""
        name, message = waiting
        self._store.delete(f"outbox/{name}{_RECORD}")
        for number in range(1, message.tries + 2):
            self._store.delete(f"outbox/{name}.{number}{_TRY}")

    def _names(self) -> list[str]:
        return self._store.children("outbox")

    def _find(self, id: str) -> Webhook | None:
        found = self._read.get(id) or json_records.find_readable(self._store, f"webhooks/{id}{_RECORD}", Webhook)
        if found is not None and found.id == id:
            self._read[id] = found
            return found
        return None
