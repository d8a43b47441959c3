"""Jobs that have ended, as workers leave them."""

from datetime import UTC, datetime, timedelta

from storage.records import JobState, Outcome, Publication
from storage.repositories.jobs import Jobs
from storage.store import Store
from tests.stores import submit, success


def upload(store: Store, key: str, content: bytes = b"x" * 100) -> object:
    path = store.staging() / "file"
    path.write_bytes(content)
    return store.upload(key, path)


def done(store: Store, name: str = "news", dataset: str | None = None, start: Publication | None = None) -> str:
    """A job that has succeeded, with files of an attempt that died before."""
    id, jobs = submit(store, model=name, dataset=dataset, start=start), Jobs(store)
    jobs.claim_attempt(id, "w")
    upload(store, f"jobs/{id}/attempts/1/model.safetensors")
    jobs.claim_attempt(id, "w")
    made = success(store, 2, id)
    others = {kind: upload(store, f"jobs/{id}/attempts/2/{kind}") for kind in ("trace", "labels")}
    jobs.record_outcome(id, made.model_copy(update={"files": made.files | others}))
    jobs.publish(id)
    return id


def failed(store: Store, seconds_ago: float = 0, dataset: str | None = None) -> str:
    id, jobs = submit(store, dataset=dataset), Jobs(store)
    jobs.claim_attempt(id, "w")
    jobs.record_outcome(
        id, Outcome(state=JobState.FAILED, attempt=1, finished_at=datetime.now(UTC) - timedelta(seconds=seconds_ago))
    )
    jobs.close(id)
    return id


def ids(store: Store) -> set[str]:
    return {job.request.id for job in Jobs(store).every()}
