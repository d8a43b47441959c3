"""Messages from the end of a job to the receiver: once, or as often as it takes, whatever process dies."""

import json
import threading
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from app.services.webhooks import delivery as delivery_module
from app.services.webhooks.delivery import Delivery
from app.services.webhooks.sender import Sender, SendFailed, new_secret
from storage.problems import WORKER_DIED, problem
from storage.records import JobDraft, JobState, Outcome
from storage.repositories import webhooks as module
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.repositories.webhooks import EVENTS, Webhook, Webhooks
from storage.store import Store
from tests.app.conftest import publish
from tests.stores import make_dataset
from tests.waiting import HANG, until


class Sent(NamedTuple):
    url: str
    id: str
    body: dict[str, Any]


class Process(Sender):
    """A gateway that delivers; ``dies`` during a try, ``error`` of tries, ``clock``."""

    def __init__(self, store: Store) -> None:
        super().__init__([])
        self.sent: list[Sent] = []
        self.error: str | None = None
        self.status: int | None = 500
        self.dies = False
        self.at, self.passed = datetime.now(UTC).timestamp(), 0.0
        """the time of day, and seconds by a clock that nobody sets"""
        self._delivery = Delivery(
            Webhooks(store), Jobs(store), Models(store), self, lambda: self.at, lambda: self.passed
        )

    def send(self, url: str, secret: str, id: str, body: bytes, timestamp: int) -> None:
        if self.dies:
            raise KeyboardInterrupt
        self.sent.append(Sent(url, id, json.loads(body)))
        if self.error is not None:
            raise SendFailed(self.error, self.status)

    def deliver(self, later: float = 0.0) -> list[Sent]:
        self.at += later
        self.passed += later
        self.sent = []
        try:
            self._delivery.deliver()
        except KeyboardInterrupt:
            assert self.dies
        return self.sent


@pytest.fixture
def process(store: Store, monkeypatch: pytest.MonkeyPatch) -> Process:
    """A gateway whose rounds end when all is tried, however slow the machine is."""
    monkeypatch.setattr(delivery_module, "_ROUND_SECONDS", HANG)
    return Process(store)


def register(store: Store, url: str = "https://example.com/", events: Any = EVENTS) -> Webhook:
    return Webhooks(store).create(url, events, new_secret())


def fail(store: Store) -> str:
    jobs = Jobs(store)
    id = jobs.create(JobDraft(dataset=make_dataset(store).id, model="news", algorithm="svm"))[0].request.id
    outcome = Outcome(
        state=JobState.FAILED, attempt=1, finished_at=datetime.now(UTC), error=problem(WORKER_DIED, "three times")
    )
    assert jobs.record_outcome(id, outcome)
    jobs.close(id)
    return id


@pytest.fixture
def webhook(store: Store) -> Webhook:
    """It is to be told of a job that has failed."""
    made = register(store)
    fail(store)
    return made


def outbox(store: Store) -> list[str]:
    return store.children("outbox")


def test_a_success_is_told_to_those_who_asked(store: Store, process: Process) -> None:
    register(store)
    register(store, "https://other.example/", ["version.published"])
    version = publish(store)
    ended, published, other = sorted(process.deliver(), key=lambda each: (each.url, each.id))
    assert (ended.url, ended.id) == ("https://example.com/", f"{version.job}.job.ended")
    assert ended.body["type"] == "job.ended"
    facts = {"job": version.job, "state": "succeeded", "dataset": version.dataset, "model_name": "news", "error": None}
    assert ended.body["data"] == {**facts, "model": {"name": "news", "version": 1}}
    assert datetime.fromisoformat(ended.body["timestamp"]).tzinfo is not None
    assert (published.url, published.body["type"]) == ("https://example.com/", "version.published")
    assert published.body["data"] == {
        "model": "news",
        "version": 1,
        "job": version.job,
        "dataset": version.dataset,
        "takes_over": True,
    }
    assert other == Sent("https://other.example/", published.id, published.body)
    assert (outbox(store), process.deliver()) == ([], [])


def test_a_failure_says_why(store: Store, process: Process) -> None:
    register(store)
    id = fail(store)
    (sent,) = process.deliver()
    assert (sent.body["data"]["job"], sent.body["data"]["state"], sent.body["data"]["model"]) == (id, "failed", None)
    assert sent.body["data"]["error"]["detail"] == "three times"


def test_without_webhooks_nothing_is_written(store: Store, process: Process) -> None:
    publish(store)
    register(store)
    assert (outbox(store), process.deliver()) == ([], [])


def test_a_job_that_has_not_ended_is_announced_when_it_has(store: Store, process: Process) -> None:
    register(store)
    id = Jobs(store).create(JobDraft(dataset=make_dataset(store).id, model="news", algorithm="svm"))[0].request.id
    Webhooks(store).note_end(id)  # as if the process had died before it created the outcome
    assert process.deliver() == []
    Jobs(store).cancel(id)
    Jobs(store).record_outcome(id, Outcome(state=JobState.CANCELLED, attempt=1, finished_at=datetime.now(UTC)))
    Jobs(store).close(id)
    assert [each.body["data"]["state"] for each in process.deliver()] == ["cancelled"]
    assert (
        Jobs(store).record_outcome(id, Outcome(state=JobState.FAILED, attempt=1, finished_at=datetime.now(UTC)))
        is False
    )
    assert process.deliver() == []


def test_a_job_that_was_deleted_before_is_not_announced(store: Store, process: Process) -> None:
    register(store)
    Jobs(store).delete(fail(store))
    assert (process.deliver(), outbox(store)) == ([], [])


@pytest.mark.usefixtures("webhook")
def test_tries_come_later_and_later_and_end(store: Store, process: Process) -> None:
    process.error = "the answer was 500"
    delays = [0.0, 5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0]
    for delay in delays:
        assert process.deliver(max(0.0, delay - 1)) == [] or delay == 0.0
        if delay:
            assert len(process.deliver(1.0)) == 1
    assert (outbox(store), process.deliver(10**6)) == ([], [])


@pytest.mark.usefixtures("webhook")
def test_a_message_whose_senders_die_is_given_up(
    store: Store, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.dies = True
    monkeypatch.setattr(module, "_TRY_SECONDS", -1.0)
    for _ in range(30):
        process.deliver(60.0)
    assert outbox(store) == []


@pytest.mark.usefixtures("webhook")
def test_a_clock_that_is_set_back_delays_no_message(store: Store, process: Process) -> None:
    """Neither of the process that failed to send it, nor of one that comes later."""
    process.error = "the answer was 500"
    process.at += 25 * 3600.0
    assert len(process.deliver()) == 1
    process.at -= 25 * 3600.0
    other = Process(store)
    assert other.deliver() == []
    assert len(process.deliver(5.0)) + len(other.deliver(5.0)) == 1
    process.error = None
    assert len(process.deliver(300.0)) + len(other.deliver(300.0)) == 1
    assert outbox(store) == []


@pytest.mark.usefixtures("webhook")
def test_a_clock_that_is_ahead_uses_up_no_tries(store: Store, process: Process) -> None:
    """Of two processes, one an hour ahead: a message is tried as seldom as its delays say."""
    other = Process(store)
    process.at += 3600.0
    process.error = other.error = "the answer was 500"
    tries = [len(each.deliver(1.0)) for _ in range(600) for each in (process, other)]
    assert sum(tries) <= 6


def test_claims_that_a_killed_process_left_are_removed(
    store: Store, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = register(store)
    left = f"job-1.job.ended.{webhook.id}.1.try"
    store.create(f"outbox/{left}", b"")
    process.deliver()
    assert outbox(store) == [left], "the message may have been removed just now"
    monkeypatch.setattr(module, "_TRY_SECONDS", -1.0)
    process.deliver()
    assert outbox(store) == []


def test_a_slow_receiver_delays_no_other(store: Store, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, other = register(store), register(store, "https://other.example/")
    for _ in range(8):
        fail(store)
    answer = threading.Event()
    sent: list[str] = []

    def send(url: str, secret: str, id: str, body: bytes, timestamp: int) -> None:
        sent.append(url)
        if url == slow.url:
            assert answer.wait(HANG)

    monkeypatch.setattr(process, "send", send)
    monkeypatch.setattr(delivery_module, "_ROUND_SECONDS", 0.1)
    process.deliver()
    until(lambda: sent.count(other.url) == 8)
    assert sent.count(slow.url) == 1, "a round waits for no receiver"
    fail(store)
    until(lambda: process.deliver() is not None and sent.count(other.url) == 9)
    assert sent.count(slow.url) == 1
    answer.set()
    until(lambda: process.deliver() is not None and sent.count(slow.url) == 9)
    assert outbox(store) == []


def test_a_receiver_gives_way_after_its_budget(store: Store, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    register(store)
    for _ in range(3):
        fail(store)
    sent: list[str] = []

    def send(url: str, secret: str, id: str, body: bytes, timestamp: int) -> None:
        sent.append(id)
        process.passed += 8.0

    monkeypatch.setattr(process, "send", send)
    for rounds in (1, 2, 3):
        process.deliver()
        assert len(set(sent)) == rounds


def test_a_receiver_that_does_not_answer_is_asked_once_a_round(store: Store, process: Process) -> None:
    """Its other messages fail with the first, and other receivers get theirs."""
    register(store)
    register(store, "https://other.example/")
    for _ in range(3):
        fail(store)
    process.error, process.status = "no answer", None
    assert sorted(each.url for each in process.deliver()) == ["https://example.com/", "https://other.example/"]
    assert process.deliver() == []
    process.error = None
    assert len(process.deliver(6.0)) == 6
    assert outbox(store) == []


def test_messages_do_not_pile_up_without_end(store: Store, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "_MAX_WAITING", 1)
    webhook = register(store)
    process.error = "the answer was 500"
    for _ in range(2):
        fail(store)
        process.deliver()
    assert {id: len(names) for id, names in Webhooks(store).waiting().items()} == {webhook.id: 1}


def test_a_damaged_record_loses_no_message(store: Store, process: Process, webhook: Webhook) -> None:
    process.error = "the answer was 500"
    process.deliver()
    key = f"webhooks/{webhook.id}.json"
    content = store.read(key)
    store.replace(key, b"{")
    other = Process(store)
    assert other.deliver(10.0) == []
    store.replace(key, content)
    assert len(Process(store).deliver(10.0)) == 1


def test_no_log_has_an_address(store: Store, process: Process) -> None:
    register(store, "https://example.com/hook?token=hush")
    fail(store)
    with capture_logs() as lines:
        process.error = "the answer was 500"
        process.deliver()
        process.error, process.status = "the answer was 410", 410
        process.deliver(6.0)
    assert len(lines) == 2
    assert "hush" not in str(lines)


@pytest.mark.usefixtures("webhook")
def test_another_process_goes_on_where_one_was_killed(
    store: Store, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.dies = True
    assert process.deliver() == []
    other = Process(store)
    assert other.deliver() == []  # the try may be under way
    monkeypatch.setattr(module, "_TRY_SECONDS", -1.0)
    assert other.deliver() == []
    (sent,) = other.deliver(3600.0)
    assert sent.body["data"]["state"] == "failed"
    assert (outbox(store), Process(store).deliver()) == ([], [])


@pytest.mark.usefixtures("webhook")
def test_of_many_processes_one_sends(store: Store) -> None:
    processes = [Process(store) for _ in range(3)]
    for process in processes:
        process.error = "the answer was 500"
    assert sum(len(process.deliver()) for process in processes) == 1
    assert sum(len(process.deliver(6.0)) for process in processes) == 1


def test_a_receiver_that_is_gone_is_removed(store: Store, process: Process) -> None:
    register(store)
    kept = register(store, "https://kept.example/")
    fail(store)
    process.error, process.status = "the answer was 410", 410
    process.deliver()
    assert Webhooks(store).every() == []
    assert outbox(store) == []
    assert kept.id.startswith("webhook-")


def test_a_webhook_that_was_deleted_gets_nothing_more(store: Store, process: Process, webhook: Webhook) -> None:
    process.error = "the answer was 500"
    process.deliver()
    Webhooks(store).delete(webhook.id)
    assert (outbox(store), process.deliver(10.0)) == ([], [])
