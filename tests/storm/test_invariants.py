"""Every invariant can fail: a sound record of a storm is spoiled in one way, and the one check that is about it says
so.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.problems import WORKER_DIED, problem
from storage.records import JobState, Outcome
from storage.repositories.datasets import Datasets, NewAnnotation
from storage.repositories.jobs import Jobs
from storage.store import open_store
from tests.stores import make_dataset, submit, success
from tests.storm.invariants import INVARIANTS, Evidence, run_again, violations
from tests.storm.ledger import Answer, Fault, Kind, Ledger, Promise, Running, Stopped
from tests.there import there

NOW = time.time()


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Two versions of a model, a cancelled job, a failed one, a relabeled dataset.

    Redis was away, a worker was told to end.
    """
    store, ledger = open_store(f"file://{tmp_path}/store"), Ledger()
    jobs, dataset = Jobs(store), make_dataset(store)
    ledger.datasets[dataset.id] = Promise(dataset.n_documents, dataset.sha256, None)
    for end in ("succeeded", "succeeded", "cancelled", "failed"):
        job = submit(store, dataset=dataset.id)
        ledger.accept(f"key of {job}", job)
        ledger.saw(job, end)
        for number in range(1, 4 if end == "failed" else 2):
            jobs.claim_attempt(job, "host.7.x", number)
        if end == "succeeded":
            jobs.record_outcome(job, success(store))
            jobs.publish(job)
            # what the helper has left
            for folder in (tmp_path / "store/.staging").glob("*/tmp*"):
                folder.rmdir()
        else:
            died = problem(WORKER_DIED, "three times") if end == "failed" else None
            jobs.record_outcome(
                job,
                Outcome.model_validate({"state": end, "attempt": 1, "finished_at": dataset.created_at, "error": died}),
            )
            jobs.close(job)
    first = next(iter(ledger.jobs))
    ledger.faults += [
        Fault(Kind.REDIS_SILENT, NOW - 50, NOW - 40),
        Fault(Kind.WORKER_TOLD, NOW - 30, NOW - 28, (Running(first, 1),)),
    ]
    ledger.answers += [Answer(what, NOW - 45, NOW - 44, 200) for what in ("read", "predict")]
    ledger.answers.append(Answer("train", NOW - 45, NOW - 43, 503, "1"))
    annotate(Datasets(store), ledger, dataset.id)
    evidence = Evidence(ledger, store, tmp_path / "store", 2.0, {dataset.n_documents: dataset.sha256})
    ledger.told["well"] = [f"{id}.job.ended" for id in ledger.jobs]
    ledger.told["well"] += [f"{version.job}.version.published" for version in evidence.versions]
    return evidence


def annotate(datasets: Datasets, ledger: Ledger, dataset: str) -> None:
    document = datasets.ids(dataset).taken([0])[0]
    datasets.annotate(dataset, [NewAnnotation(id="first", document=document, action="skip", at=datetime.now(UTC))])
    ledger.received(dataset, "first")


def forget_a_receiver(evidence: Evidence) -> None:
    evidence.ledger.told["well"].pop()


def sign_wrongly(evidence: Evidence) -> None:
    evidence.ledger.told["well"].append(f"{ids(evidence)[0]}.job.ended, signed wrongly")


def lose_an_answer(evidence: Evidence) -> None:
    evidence.ledger.received(dataset_of(evidence), "second")


def double_an_answer(evidence: Evidence) -> None:
    folder = f"datasets/{dataset_of(evidence)}/annotations"
    evidence.store.create(f"{folder}/0000000002.json", evidence.store.read(f"{folder}/0000000001.json"))


def ids(evidence: Evidence, state: JobState = JobState.SUCCEEDED) -> list[str]:
    return sorted(job.request.id for job in evidence.jobs if job.state is state)


def dataset_of(evidence: Evidence) -> str:
    return next(iter(evidence.ledger.datasets))


def lose_a_job(evidence: Evidence) -> None:
    evidence.ledger.jobs["job-" + "0" * 24] = {"failed"}


def leave_a_job_running(evidence: Evidence) -> None:
    job = submit(evidence.store, dataset=dataset_of(evidence), model="other")
    evidence.ledger.accept("new", job)


def change_a_final_state(evidence: Evidence) -> None:
    evidence.ledger.saw(ids(evidence)[0], "cancelled")


def make_two_jobs_of_a_key(evidence: Evidence) -> None:
    first, second = ids(evidence)
    evidence.ledger.accept(f"key of {first}", second)


def make_a_job_of_nobody(evidence: Evidence) -> None:
    del evidence.ledger.jobs[ids(evidence)[0]]


def publish_twice(evidence: Evidence) -> None:
    """As ``Models.publish`` never does: at the next number, though there is one."""
    folder = evidence.root / "models/news/versions"
    (folder / "3.json").write_text((folder / "1.json").read_text().rstrip().replace('"number":1', '"number":3'))


def damage_a_model(evidence: Evidence) -> None:
    path = evidence.root / next(version for version in evidence.versions).files["model"].key
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def lose_a_version(evidence: Evidence) -> None:
    (evidence.root / "models/news/versions/2.json").unlink()


def leave_a_gap(evidence: Evidence) -> None:
    folder = evidence.root / "models/news/versions"
    (folder / "5.json").write_text((folder / "2.json").read_text().rstrip().replace('"number":2', '"number":5'))
    (folder / "2.json").unlink()
    job = next(version.job for version in evidence.versions if version.number == 5)
    published = evidence.root / f"jobs/{job}/published.json"
    published.write_text(published.read_text().rstrip().replace('"version":2', '"version":5'))


def lose_a_dataset(evidence: Evidence) -> None:
    evidence.store.delete(f"datasets/{dataset_of(evidence)}")


def tear_a_dataset(evidence: Evidence) -> None:
    key = f"datasets/{dataset_of(evidence)}/values.npy"
    evidence.store.replace(key, evidence.store.read(key)[:100])


def exchange_a_dataset(evidence: Evidence) -> None:
    id = dataset_of(evidence)
    evidence.ledger.datasets[id] = evidence.ledger.datasets[id]._replace(sha256="0" * 64)


def keep_what_was_refused(evidence: Evidence) -> None:
    dataset = make_dataset(evidence.store)
    manifest = evidence.root / f"datasets/{dataset.id}/manifest.json"
    manifest.write_text(manifest.read_text().rstrip().replace('"name":null', '"name":"refused"'))
    evidence.ledger.refused.add("refused")


def keep_what_was_deleted(evidence: Evidence) -> None:
    evidence.ledger.deleted.add(make_dataset(evidence.store).id)


def leave_a_temporary_file(evidence: Evidence) -> None:
    (evidence.store.staging() / "part").touch()


def leave_half_a_dataset(evidence: Evidence) -> None:
    evidence.store.create("datasets/ds-x/indices.npy", b"")


def leave_files_of_an_attempt(evidence: Evidence) -> None:
    evidence.store.create(f"jobs/{ids(evidence)[0]}/attempts/1/labels.ndjson", b"")


def leave_a_mark(evidence: Evidence) -> None:
    evidence.store.create("deleting/ds-x.deletion-y", b"")


def fail_for_another_reason(evidence: Evidence) -> None:
    path = evidence.root / f"jobs/{ids(evidence, JobState.FAILED)[0]}/outcome.json"
    path.write_text(path.read_text().rstrip().replace("worker-died", "internal"))


def fail_too_early(evidence: Evidence) -> None:
    Jobs(evidence.store).record_hand_back(ids(evidence, JobState.FAILED)[0], 2)


def run_again_late(evidence: Evidence) -> None:
    evidence.ledger.faults.append(
        Fault(Kind.CHILD_KILLED, NOW - 20, NOW - 20, (Running(ids(evidence, JobState.FAILED)[0], 1),))
    )


def never_run_again(evidence: Evidence) -> None:
    job = ids(evidence)[0]
    outcome = evidence.root / f"jobs/{job}/outcome.json"
    outcome.write_text(outcome.read_text().rstrip().replace('"attempt":1', '"attempt":2'))
    evidence.ledger.faults[1] = evidence.ledger.faults[1]._replace(kind=Kind.WORKER_KILLED, hit=(Running(job, 1),))


def end_slowly(evidence: Evidence) -> None:
    evidence.ledger.faults[1] = evidence.ledger.faults[1]._replace(ended=NOW)


def forget_to_hand_back(evidence: Evidence) -> None:
    evidence.ledger.faults[1] = evidence.ledger.faults[1]._replace(hit=(Running(ids(evidence, JobState.FAILED)[0], 2),))


def answer_badly(evidence: Evidence) -> None:
    evidence.ledger.answers.append(Answer("upload", NOW - 45, NOW - 44, 500))


def be_away_for_no_reason(evidence: Evidence) -> None:
    evidence.ledger.answers.append(Answer("upload", NOW - 10, NOW - 9, 503, "1"))


def not_say_when(evidence: Evidence) -> None:
    evidence.ledger.answers.append(Answer("upload", NOW - 45, NOW - 44, 503))


def hang(evidence: Evidence) -> None:
    evidence.ledger.answers.append(Answer("upload", NOW - 80, NOW - 60, 201))


def not_predict_without_redis(evidence: Evidence) -> None:
    evidence.ledger.answers.append(Answer("predict", NOW - 45, NOW - 44, 503, "1"))


def be_silent_without_redis(evidence: Evidence) -> None:
    evidence.ledger.answers.clear()


def take_jobs_without_redis(evidence: Evidence) -> None:
    evidence.ledger.answers.append(Answer("train", NOW - 45, NOW - 44, 202))


def give_up(evidence: Evidence) -> None:
    evidence.ledger.broken.append("turn 1: no final answer")


def end_badly(evidence: Evidence) -> None:
    evidence.ledger.stopped = Stopped(1, 3.0)


def leave_a_process(evidence: Evidence) -> None:
    evidence.ledger.stopped = Stopped(0, 3.0, ("worker",))


def never_end(evidence: Evidence) -> None:
    evidence.ledger.stopped = Stopped(0, 60.0)


SPOILED: dict[str, tuple[Callable[[Evidence], None], ...]] = {
    "accepted_jobs_have_ended": (lose_a_job, change_a_final_state),
    "no_job_was_doubled": (make_two_jobs_of_a_key, make_a_job_of_nobody),
    "successes_have_one_version": (publish_twice, damage_a_model, lose_a_version),
    "versions_have_no_gaps": (leave_a_gap,),
    "promised_datasets_are_whole": (lose_a_dataset, tear_a_dataset, exchange_a_dataset),
    "received_answers_are_in_the_log_once": (lose_an_answer, double_an_answer),
    "receivers_were_told": (forget_a_receiver, sign_wrongly),
    "nothing_else_is_visible": (keep_what_was_refused, keep_what_was_deleted),
    "nothing_is_left_behind": (leave_a_temporary_file, leave_half_a_dataset, leave_files_of_an_attempt, leave_a_mark),
    "failures_are_explained": (fail_for_another_reason, fail_too_early),
    "killed_jobs_run_again_soon": (run_again_late, never_run_again),
    "told_to_end_workers_do": (end_slowly, forget_to_hand_back),
    "answers_are_expected": (answer_badly, be_away_for_no_reason, not_say_when),
    "nothing_hangs": (hang,),
    "without_redis_it_predicts_and_reads": (
        not_predict_without_redis,
        be_silent_without_redis,
        take_jobs_without_redis,
    ),
    "clients_got_final_answers": (give_up,),
    "it_ends_when_told": (end_badly, leave_a_process, never_end),
}


def test_a_sound_record_passes(evidence: Evidence) -> None:
    assert violations(evidence) == {}
    assert len(ids(evidence)) == 2


def test_every_invariant_is_here() -> None:
    assert list(SPOILED) == [check.__name__ for check in INVARIANTS]


@pytest.mark.parametrize(("name", "spoil"), [(name, spoil) for name, spoils in SPOILED.items() for spoil in spoils])
def test_each_invariant_notices(name: str, spoil: Callable[[Evidence], None], evidence: Evidence) -> None:
    spoil(evidence)
    assert list(violations(evidence)) == [name]


def test_a_job_that_still_runs_has_not_ended(evidence: Evidence) -> None:
    leave_a_job_running(evidence)
    assert list(violations(evidence)) == ["accepted_jobs_have_ended", "nothing_is_left_behind"]


def test_the_time_to_run_again_is_taken_from_the_records(evidence: Evidence) -> None:
    evidence.ledger.faults.clear()
    job = ids(evidence, JobState.FAILED)[0]
    began = there(evidence.began(job, 2))
    killed = Fault(Kind.CHILD_KILLED, began - 4, began - 4, (Running(job, 1),))
    evidence.ledger.faults += [killed, Fault(Kind.DISK_FULL, began - 3, began - 2)]
    (again,) = run_again(evidence)
    assert again.seconds == pytest.approx(4)
    assert again.disturbed == pytest.approx(2)
