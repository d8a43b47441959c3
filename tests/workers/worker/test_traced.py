"""Spans of a job: they continue the trace of its request."""

from storage.records import JobDraft
from storage.repositories.jobs import Jobs
from storage.store import Store
from tests.spans import Spans, id_of, parent_of, spans, trace_of
from tests.stores import make_dataset
from tests.there import there
from tests.workers.worker.attempts import Faked
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext

__all__ = ["spans"]
TRACE, REQUEST = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def submitted(store: Store) -> str:
    job, _ = Jobs(store).create(
        JobDraft(dataset=make_dataset(store).id, model="news", algorithm="svm", traceparent=f"00-{TRACE}-{REQUEST}-01")
    )
    return job.request.id


def test_the_steps_of_a_job(store: Store, context: WorkerContext, fake: list[Faked], spans: Spans) -> None:
    id = submitted(store)
    Attempts(context).run(id)
    found = spans.named()
    job = found["train svm"]
    assert {trace_of(span) for span in found.values()} == {TRACE}
    assert parent_of(job) == REQUEST
    steps = ["wait in queue", "read documents", "train", "compare", "store results", "publish"]
    assert {name: parent_of(found[name]) for name in steps} == dict.fromkeys(steps, id_of(job))
    assert job.attributes is not None
    assert job.attributes["halfmoon.job"] == id
    assert (job.attributes["halfmoon.attempt"], job.attributes["halfmoon.outcome"], job.status.is_ok) == (
        1,
        "succeeded",
        True,
    )
    waited = found["wait in queue"]
    created = Jobs(store).get(id).request.created_at
    assert abs(there(waited.start_time) - created.timestamp() * 1e9) < 1e6


def test_a_job_that_fails(store: Store, context: WorkerContext, fake: list[Faked], spans: Spans) -> None:
    def broken(_: object) -> object:
        raise RuntimeError("no such luck")

    fake.append(broken)  # type: ignore[arg-type]
    Attempts(context).run(submitted(store))
    job, training = spans.named()["train svm"], spans.named()["train"]
    assert (there(job.attributes)["halfmoon.outcome"], job.status.is_ok) == ("failed", False)
    assert [event.name for event in training.events] == ["exception"]
