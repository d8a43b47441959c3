"""The cluster gives the bits of memory, whoever works and however many there are; failures are made good."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

from core.documents.reorder import compact
from core.documents.rows import SparseRows
from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores
from core.problem import Status
from core.train import TrainingContext, TrainingTask, train
from storage.errors import ClusterUnavailable, StoreUnavailable
from storage.store import open_store
from tests.core.digests import dense, digest
from tests.core.problems import normal, random_rows
from tests.there import there
from tests.waiting import SLOW, SOON, until
from tests.workers.cluster.conftest import engine_of
from workers.cluster import local, tasks
from workers.cluster.address import TlsFiles
from workers.cluster.engine import _KEPT_PASSES, ClusterEngine, ClusterPasses, ClusterStore, connected
from workers.cluster.local import CONFIG, local_cluster
from workers.cluster.tasks import FewRows, packed, received
from workers.cluster.workforce import placement
from workers.worker.training_inputs import ScratchFiles

OPTIONS: dict[str, dict[str, Any]] = {
    "svm": {"tolerance": 1e-3},
    "cuts3vm": {"max_iterations": 2, "positive_fraction": "labeled"},
    "auto": {},
}


def sparse() -> SparseRows:
    rows = random_rows(np.random.default_rng(1), 120, 30, density=0.3)
    return rows._replace(values=np.abs(rows.values))


def task_of(rows: SparseRows, algorithm: str) -> TrainingTask:
    """Two classes, few labels; of auto all, which then tries much less."""
    labeled = np.arange(rows.n_rows) % (1 if algorithm == "auto" else 13) == 0
    class_indices = np.where(labeled, np.arange(rows.n_rows) % 2, -1)
    return TrainingTask(rows, class_indices, ["a", "b"], algorithm, OPTIONS[algorithm])


@pytest.fixture(params=[1, 2, 4, 7], ids="{}-workers".format)
def n_workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, client: Client) -> int:
    """How many workers get shards: one or two each of those that there are, in an order that is drawn."""
    count: int = request.param
    addresses = random.Random(count).sample(2 * list(client.nthreads()), count)
    monkeypatch.setattr(Client, "nthreads", lambda _: Counter(addresses))
    return count


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("make", [sparse, lambda: dense(2, 60)], ids=["sparse", "dense"])
def test_answers_have_the_bits_of_memory(
    client: Client, tmp_path: Path, n_workers: int, make: Callable[[], SparseRows]
) -> None:
    rows = compact(make(), np.arange(make().n_rows)[::-1], lambda: None).rows
    rng, n_rows, length = np.random.default_rng(0), rows.n_rows, rows.n_features + 1
    vectors, weights = (
        [normal(rng, length) for _ in range(3)],
        [rng.random(n_rows) * (rng.random(n_rows) < 0.7) for _ in range(3)],
    )
    skipped, labels = (
        (rng.random(n_rows) < 0.4).astype(float),
        np.sign(normal(rng, n_rows)) * (rng.random(n_rows) < 0.5),
    )

    def asked(answers: Any) -> list[bytes]:
        found = []
        products = [np.full(n_rows, 7.0) for _ in range(3)]
        found += answers.products([Product(*each) for each in zip(vectors, weights, products, strict=True)])
        scores, cut, other, sums = np.full(n_rows, 7.0), np.full(n_rows, 7.0), np.full(n_rows, 7.0), np.ones(length)
        found.append(answers.product(Product(vectors[0], weights[1], scores)))
        answers.scores(Scores(vectors[1], skipped, scores))
        many = [Scores(each, skipped, np.full(n_rows, 7.0)) for each in vectors]
        answers.all_scores(many)
        found += [each.scores for each in many]
        answers.adjoint(Adjoint(weights[0], sums))
        few, none = np.zeros(n_rows), np.zeros(n_rows)
        few[:2], little = 1.5, np.ones(length)
        answers.adjoint(Adjoint(few, little))
        several = [Adjoint(each, np.ones(length)) for each in (weights[1], few, weights[2])]
        answers.adjoints(several)
        found += [each.sums for each in several]
        found += answers.cuts([Cut(vectors[2], labels, weights[2], cut), Cut(vectors[1], -labels, weights[1], other)])
        found.append(answers.product(Product(vectors[0], none, np.zeros(n_rows))))
        answers.close()
        return [each.tobytes() for each in (*found, *products, scores, cut, other, sums, little)]

    spread = engine_of(client, tmp_path).over(rows, 1, lambda: None)
    assert isinstance(spread, ClusterPasses)
    assert len(spread._shards) == min(n_workers, len(spread._slices))
    assert asked(spread) == asked(Passes(rows, 1, lambda: None))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("algorithm", OPTIONS)
def test_trainings_have_the_bits_of_memory(client: Client, tmp_path: Path, algorithm: str) -> None:
    task = task_of(sparse(), algorithm)
    shared = train(task, TrainingContext(threads=2, engine=engine_of(client, tmp_path)))
    assert digest(shared) == digest(train(task, TrainingContext(threads=1)))
    assert open_store(f"file://{tmp_path}/store").children("jobs/x/shards") == [], "shards are removed"


@pytest.mark.usefixtures("small_parts")
def test_vectors_of_rows_that_have_not_changed_are_not_sent_again(client: Client, tmp_path: Path) -> None:
    rows = sparse()
    answers = engine_of(client, tmp_path).over(rows, 1, lambda: None)
    assert isinstance(answers, ClusterPasses)
    weights, scores, sent = np.ones(rows.n_rows), np.zeros(rows.n_rows), []
    for number in range(3):
        answers.product(Product(np.full(rows.n_features + 1, float(number)), weights, scores))
        sent.append(answers.bytes_sent)
    columns = 8 * sum(len(shard.columns) for shard in answers._shards)
    assert sent == [8 * rows.n_rows + columns, 8 * rows.n_rows + 2 * columns, 8 * rows.n_rows + 3 * columns]
    answers.close()


@pytest.mark.usefixtures("small_parts")
def test_vectors_of_rows_that_no_pass_uses_any_more_are_let_go(client: Client, tmp_path: Path) -> None:
    rows, scores = sparse(), np.zeros(120)
    answers = engine_of(client, tmp_path).over(rows, 1, lambda: None)
    assert isinstance(answers, ClusterPasses)
    for number in range(12):
        answers.product(Product(np.zeros(31), np.full(120, 1.0 + number), scores))
    assert len(answers._kept) == (_KEPT_PASSES + 1) * len(answers._shards)
    answers.close()


def test_few_rows_are_sent_as_few() -> None:
    rows = np.zeros(100)
    rows[[3, 97]] = -0.1, 1e-300
    few = packed(rows)
    assert isinstance(few, FewRows)
    assert few.positions.tolist() == [3, 97]
    assert received(few).tobytes() == rows.tobytes()
    many = packed(rows + 1)
    assert isinstance(many, np.ndarray)
    assert many.tobytes() == (rows + 1).tobytes()
    assert not np.shares_memory(many, rows)


ANSWERED = Event()
"""until then no worker answers"""


def held(*_: object) -> None:
    ANSWERED.wait(SOON)


@pytest.mark.usefixtures("small_parts")
def test_a_training_is_cancelled_while_workers_are_busy(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.cluster.tasks.product", held)
    asked: list[object] = []

    def observer(point: object) -> bool:
        asked.append(point)
        return len(asked) > 3

    try:
        training = train(
            task_of(sparse(), "svm"), TrainingContext(observer=observer, threads=1, engine=engine_of(client, tmp_path))
        )
    finally:
        ANSWERED.set()
    # had it waited for an answer, which is none, that would have been an error
    assert training.status is Status.CANCELLED
    assert len(asked) > 3


@pytest.mark.usefixtures("small_parts")
def test_workers_may_be_added_and_all_may_be_replaced(tmp_path: Path, tls: TlsFiles) -> None:
    """A request to a worker by name, when nobody worked, goes to whoever comes."""
    task, came = task_of(sparse(), "svm"), list[int]()
    with (
        dask.config.set(CONFIG),
        local_cluster("127.0.0.1", 0, 1, tls, processes=False) as own,
        connected(own.scheduler_address, tls) as client,
    ):

        def observer(point: Any) -> bool:
            if point.iteration > 0 and not came:
                own.scale(2)
                client.wait_for_workers(2, SOON)
                came.append(len(client.nthreads()))
            elif point.iteration > 1 and len(came) == 1:
                own.scale(0)
                until(lambda: not client.nthreads())
                came.append(len(client.nthreads()))
                Timer(0.3, own.scale, [1]).start()
            return False

        shared = train(task, TrainingContext(observer=observer, threads=1, engine=engine_of(client, tmp_path)))
    assert came == [2, 0]
    assert digest(shared) == digest(train(task, TrainingContext(threads=1)))


def test_a_worker_that_is_silent_is_replaced(monkeypatch: pytest.MonkeyPatch, tls: TlsFiles) -> None:
    """A worker without heartbeats but with its connections, as of a process that was stopped."""
    monkeypatch.setattr("workers.cluster.local._SILENT_SECONDS", 1.0)
    with dask.config.set(CONFIG), local_cluster("127.0.0.1", 0, 2, tls, processes=False) as own:
        silent = own.workers[0]
        there(own.loop).add_callback(silent.periodic_callbacks["heartbeat"].stop)
        until(lambda: silent.address not in own.scheduler.workers, SOON)


def test_nobody_is_blamed_for_what_the_scheduler_had_no_time_to_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    now, replaced = [0.0], list[float]()
    monkeypatch.setattr(local, "time", lambda: now[0])

    async def remove_worker(*_: object, **__: object) -> None:
        replaced.append(now[0])

    worker = SimpleNamespace(last_seen=0.0, nanny=None, address="tcp://127.0.0.1:1")
    scheduler: Any = SimpleNamespace(workers={worker.address: worker}, remove_worker=remove_worker)
    watch: Any = local._SilenceWatch(scheduler)
    for second in range(20, 40):
        now[0] = second
        asyncio.run(watch._look())
    assert replaced[0] == 20 + local._SILENT_SECONDS + 1


@pytest.mark.usefixtures("small_parts")
def test_shards_do_not_count_as_memory_of_their_worker(client: Client, tmp_path: Path) -> None:
    """Or a limit would keep it from reading the shards of another that has gone."""
    answers = engine_of(client, tmp_path).over(sparse(), 1, lambda: None)
    answers.product(Product(np.ones(31), np.ones(120), np.zeros(120)))
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if f"{tmp_path}/store" in line]
    assert {permissions for _, permissions, *_ in maps} == {"r--s"}
    answers.close()


@pytest.mark.usefixtures("small_parts")
def test_a_scheduler_that_ends_is_told(tmp_path: Path, tls: TlsFiles) -> None:
    rows = sparse()
    with (
        dask.config.set(CONFIG),
        local_cluster("127.0.0.1", 0, 1, tls, processes=False) as own,
        connected(own.scheduler_address, tls) as client,
    ):
        engine = engine_of(client, tmp_path)
        answers = engine.over(rows, 1, lambda: None)
        answers.product(Product(np.ones(31), np.ones(120), np.zeros(120)))
        own.close()
        with pytest.raises(ClusterUnavailable):
            answers.product(Product(np.ones(31), np.ones(120), np.zeros(120)))
        with pytest.raises(ClusterUnavailable):
            engine.over(rows, 1, lambda: None)
        answers.close()


@pytest.mark.usefixtures("small_parts")
def test_a_worker_that_reads_another_store_says_so(client: Client, tmp_path: Path) -> None:
    stored = ClusterStore(open_store(f"file://{tmp_path}/store"), f"file://{tmp_path}/other", "jobs/x")
    answers = ClusterEngine(client, ScratchFiles(tmp_path), stored).over(sparse(), 1, lambda: None)
    with pytest.raises(
        StoreUnavailable, match=f"{tmp_path}/other has no jobs/x/shards/.* it must reach the store of the service"
    ):
        answers.product(Product(np.ones(31), np.ones(120), np.zeros(120)))
    answers.close()


@pytest.fixture(scope="module")
def killable(tls: TlsFiles) -> Iterator[Client]:
    """Nobody is replaced for silence: on a busy machine a worker that begins has none to spare for its heartbeat.

    Dask by itself would give a worker up that does not come back at once.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}),
        dask.config.set(CONFIG),
    ):
        patch.setattr(local, "_SILENT_SECONDS", 600.0)
        with local_cluster("127.0.0.1", 0, 2, tls) as cluster, connected(cluster.scheduler_address, tls) as made:
            yield made


def killing(task: Callable[..., Any], due: Path) -> Callable[..., Any]:
    """The task; one of its calls kills its worker when there is this file."""

    def counted(*given: Any) -> Any:
        with suppress(FileNotFoundError):
            due.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return task(*given)

    return counted


@pytest.mark.usefixtures("small_parts")
def test_a_worker_may_be_killed_in_a_pass(killable: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, due, asked = task_of(sparse(), "svm"), tmp_path / "due", list[object]()
    expected = digest(train(task, TrainingContext(threads=1)))
    monkeypatch.setattr("workers.cluster.tasks.product", killing(tasks.product, due))

    def observer(point: Any) -> bool:
        if point.iteration > 0 and not asked:
            due.touch()
            asked.append(point)
        return False

    assert (
        digest(train(task, TrainingContext(observer=observer, threads=1, engine=engine_of(killable, tmp_path))))
        == expected
    )
    assert asked
    assert not due.exists()


def test_a_worker_that_was_killed_comes_back(killable: Client) -> None:
    killable.wait_for_workers(2, timeout=SLOW)
    before = set(killable.run(os.getpid).values())
    os.kill(min(before), signal.SIGKILL)
    until(lambda: len(set(killable.run(os.getpid, on_error="ignore").values()) - {min(before)}) == len(before), SLOW)


def test_each_worker_gets_as_many_as_it_has_threads() -> None:
    assert placement([""] * 4, {"a": 1, "b": 2, "c": 1}) == ["b", "a", "b", "c"]
    assert sorted(placement([""] * 5, {"a": 1, "b": 1})) == ["a", "a", "a", "b", "b"]
    assert placement([""] * 2, {"a": 1, "b": 1, "c": 1}) == ["a", "b"]


def test_what_a_worker_had_that_has_gone_is_shared_and_comes_back_to_the_one_that_takes_its_place() -> None:
    held = ["a", "b", "c"]
    assert placement(held, {"a": 1, "b": 1, "c": 1, "new": 1}) == held
    without = placement(held, {"a": 1, "c": 1})
    assert without == ["a", "a", "c"]
    assert placement(without, {"a": 1, "c": 1, "new": 1}) == ["a", "new", "c"]
    assert placement(held, {"new": 1}) == ["new"] * 3
