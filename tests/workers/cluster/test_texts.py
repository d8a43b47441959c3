"""Terms that a cluster counts: those of memory to the bit, whoever counts which part; what fails is told by name, and nothing is left."""

from functools import partial
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from distributed import Client, LocalCluster

from core.documents.kinds import TextRows
from core.documents.text.tfidf_by_parts import fit_by_parts
from core.documents.text.tfidf_fit import fit_terms
from core.options.text import TextOptions
from core.watch import Stopped
from tests.core.documents.text.test_tfidf import ODD, collection
from tests.waiting import SOON
from tests.workers.cluster.conftest import texts_in
from tests.workers.conftest import make_dataset, submit
from workers.cluster import texts as tasks
from workers.cluster.address import NO_TLS, ClusterAddress
from workers.cluster.counter import ClusterCounter
from workers.cluster.shards import opened_store
from workers.contract import File
from workers.errors import StoreFull, StoreUnavailable
from workers.repositories.datasets import Batch
from workers.repositories.jobs import Jobs
from workers.repositories.models import Models
from workers.store import Store, open_store
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.engines import ChosenEngine

pytestmark = pytest.mark.usefixtures("small_texts")

NO_WORD = "!" * 1_000_000
ANSWERED = Event()
"""until then no worker answers"""


@pytest.mark.parametrize("options", [TextOptions(), TextOptions(max_terms=150), TextOptions(ngrams=1, min_documents=1)], ids=str)
def test_terms_have_the_bits_of_memory(client: Client, tmp_path: Path, options: TextOptions) -> None:
    texts, stored, shares = TextRows.of([*collection(), NO_WORD, *ODD]), texts_in(tmp_path), list[float]()
    found = fit_by_parts(partial(ClusterCounter, texts, client, stored), texts, options, lambda done, held: shares.append(done))
    expected = fit_terms(texts, options, lambda done, held: None)
    assert len(stored.store.children("jobs/x/texts/parts")) > 3
    runs = stored.store.children("jobs/x/texts/runs")
    assert any(not stored.store.read(f"jobs/x/texts/runs/{name}") for name in runs), "a part has no words"
    assert found.words == expected.words
    np.testing.assert_array_equal(found.keys, expected.keys)
    assert found.idf.tobytes() == expected.idf.tobytes()
    assert shares == sorted(shares)
    stored.close()
    assert stored.store.children("jobs/x/texts") == []


def test_a_job_is_shared_and_leaves_nothing_behind(
    context: WorkerContext, store: Store, cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.worker.engines.EngineChoice.of", lambda *_: ChosenEngine("memory", 0))
    dataset = make_dataset(store, [Batch(TextRows.of(collection()), ["a", "b", *[None] * (len(collection()) - 2)])])
    address, engines = ClusterAddress(cluster.scheduler_address, NO_TLS, f"file://{tmp_path}/store"), []
    for own in (context, context._replace(engine="cluster", cluster=address)):
        id = submit(store, dataset=dataset.id, algorithm="svm")
        Attempts(own).run(id)
        outcome = Jobs(store).get(id).outcome
        assert outcome is not None
        assert outcome.report is not None, outcome
        engines.append(outcome.report["terms_engine"])
        assert store.children(f"jobs/{id}/attempts/1/texts") == []
    assert engines == ["memory", "cluster"]
    one, two = (version.files["model"].sha256 for version in Models(store).versions("news"))
    assert one == two


def test_what_cannot_be_stored_is_left_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker goes on after a task that failed, and nobody looks for its files."""
    store = open_store(f"file://{tmp_path}/store")

    def full(self: Store, key: str, path: Path) -> File:
        assert path.stat().st_size
        raise StoreFull("no room")

    monkeypatch.setattr(type(store), "upload", full)
    with pytest.raises(StoreFull):
        tasks.store_texts(store, "jobs/x/texts/parts/0", TextRows.of(["a text"]))
    assert list(store.staging().parent.glob("*/*")) == []


def held(*_: object) -> None:
    ANSWERED.wait(SOON)


def test_a_stop_is_heard_while_workers_count(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.cluster.counter.count_words", held)
    texts, asked = TextRows.of(collection()), list[float]()

    def report(done: float, _: int) -> None:
        asked.append(done)
        if len(asked) > 20:
            raise Stopped

    try:
        with pytest.raises(Stopped):
            fit_by_parts(partial(ClusterCounter, texts, client, texts_in(tmp_path)), texts, TextOptions(), report)
    finally:
        ANSWERED.set()


def test_a_worker_that_reads_another_store_says_so(client: Client, tmp_path: Path) -> None:
    texts = TextRows.of(collection())
    counting = partial(ClusterCounter, texts, client, texts_in(tmp_path, f"file://{tmp_path}/other"))
    with pytest.raises(StoreUnavailable, match=f"{tmp_path}/other has no jobs/x/texts/parts/.* it must reach the store of the service"):
        fit_by_parts(counting, texts, TextOptions(), lambda done, held: None)


def lost(file: File, counting: tasks.Counting) -> File:
    runs = tasks.count_words(file, counting)
    opened_store(counting.store_url).delete(runs.key)
    return runs


def test_counts_that_are_lost_are_told_by_their_file(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.cluster.counter.count_words", lost)
    texts = TextRows.of(collection())
    with pytest.raises(StoreUnavailable, match="has no jobs/x/texts/runs/"):
        fit_by_parts(partial(ClusterCounter, texts, client, texts_in(tmp_path)), texts, TextOptions(), lambda done, held: None)
