"""Jobs with vectors of an encoder for their texts: made once, kept, and made of new texts by the model."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.kinds import FIELDS, TextRows, parts_of
from core.documents.part_columns import EncoderId, PartColumns
from core.documents.rows import SparseRows
from core.progress import WHOLE, Stopped, TracePoint, Watch
from storage.errors import Conflict, StoreUnavailable
from storage.records import Dataset, EncoderRef, File, Job, JobDraft, JobState, Publication
from storage.repositories.datasets import Batch, Datasets, encodings
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.stores import failure_of, make_dataset, outcome_of
from tests.there import there
from tests.workers.encoders.tiny import TABLE, static_folder
from workers.encoders.catalogue import Encoders
from workers.encoders.encoder import Encoder, Vectors
from workers.encoders.rows import with_encoder
from workers.worker import training, training_inputs
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.heartbeat import Heartbeat
from workers.worker.training_inputs import WithVectors, with_vectors

pytest.importorskip("tokenizers", reason="the extra encoders is not installed")

TEXTS = [("goal late", "vote late")[place % 2] for place in range(40)]


@pytest.fixture
def encoders(tmp_path: Path) -> Encoders:
    return Encoders({"tiny": static_folder(tmp_path / "tiny")})


def dataset_of(store: Store) -> Dataset:
    return make_dataset(
        store,
        [
            Batch(
                TextRows.of(TEXTS),
                [("sport", "politics")[place % 2] if place < 8 else None for place in range(len(TEXTS))],
            )
        ],
    )


def job_of(
    store: Store, dataset: str, encoder: EncoderId, algorithm: str = "auto", start: Publication | None = None
) -> str:
    ref = EncoderRef(name=encoder.name, digest=encoder.digest)
    draft = JobDraft(dataset=dataset, model="news", algorithm=algorithm, text={}, encoder=ref, start=start)
    return Jobs(store).create(draft)[0].request.id


def ended(store: Store, context: WorkerContext, id: str) -> Job:
    Attempts(context).run(id)
    return Jobs(store).get(id)


def test_a_model_reads_texts_by_the_encoder_that_it_learned_with(
    store: Store, context: WorkerContext, encoders: Encoders
) -> None:
    dataset = dataset_of(store)
    job = ended(store, context._replace(encoders=encoders), job_of(store, dataset.id, encoders.id("tiny")))
    assert job.state is JobState.SUCCEEDED, job.outcome
    version = Models(store).resolve("news")
    assert there(there(job.outcome).report)["encoder"] == {
        "name": "tiny",
        "digest": encoders.id("tiny").digest,
        "read": 40,
        "texts": 40,
        "used": True,
    }
    assert (version.facts["parts"], version.facts["encoder"]) == ("text, vector.tiny", "tiny")
    model = with_encoder(Models(store).load(version), encoders)
    read = model.vocabulary.read(TextRows.of(["late goal", "late vote", ""]))
    assert [model.classes[place] for place in model.labels_of(model.scores(read.rows))[:2]] == ["sport", "politics"]
    assert read.missing == {"text": 1}
    assert np.diff(read.rows.indptr).tolist() == [5, 5, 3]
    assert model.vocabulary.encodes


def test_a_start_from_a_model_with_an_encoder(store: Store, context: WorkerContext, encoders: Encoders) -> None:
    """Its weights of terms and of vectors are carried over: at the minimum already, the solver has nothing to do."""
    dataset, id = dataset_of(store).id, encoders.id("tiny")
    iterations = []
    for start in (None, Publication(name="news", version=1)):
        done = ended(store, context._replace(encoders=encoders), job_of(store, dataset, id, "svm", start))
        iterations.append(there(there(done.outcome).progress).iteration)
    assert iterations[0] > iterations[1] == 0


def test_a_start_with_vectors_of_texts_whose_labeled_ones_are_not_all_read(
    store: Store, context: WorkerContext, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights of the terms are carried over, and the version says that it has no others."""
    id, with_tiny = encoders.id("tiny"), context._replace(encoders=encoders)
    ended(store, with_tiny, job_of(store, dataset_of(store).id, id))
    monkeypatch.setattr("workers.worker.training.with_vectors", partial(with_vectors, most_bytes=1))
    texts, labels = TextRows.of(["a goal", "late goal", "a vote", "late vote"]), ["sport", "sport", "politics", None]
    other = make_dataset(store, [Batch(texts, labels)]).id
    job = ended(store, with_tiny, job_of(store, other, id, "svm", Publication(name="news", version=1)))
    assert there(there(job.outcome).report)["encoder"]["used"] is False
    assert "the encoder 'tiny' has read 0 of 4 texts, and not yet all" in there(job.outcome).warnings[0]


def test_vectors_are_made_once_for_documents(
    store: Store, context: WorkerContext, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataset_of(store)
    ended(store, context._replace(encoders=encoders), job_of(store, dataset.id, encoders.id("tiny")))
    relabeled = Datasets(store).relabel(dataset.id, {"9": "politics"})

    class Used:
        width = 3

        def encode(self, texts: Any) -> Any:
            raise AssertionError("encoded again")

    monkeypatch.setattr(encoders, "load", lambda id: Used())
    job = ended(store, context._replace(encoders=encoders), job_of(store, relabeled.id, encoders.id("tiny")))
    assert job.state is JobState.SUCCEEDED, job.outcome
    assert there(outcome_of(store, job.request.id).comparison).against == 1
    assert store.children(f"datasets/{dataset.id}/encodings")


def test_another_encoder_of_the_name_fails_the_job(
    store: Store, context: WorkerContext, encoders: Encoders, tmp_path: Path
) -> None:
    id = encoders.id("tiny")
    others = Encoders({"tiny": static_folder(tmp_path / "other", TABLE * 3)})
    job = ended(store, context._replace(encoders=others), job_of(store, dataset_of(store).id, id))
    assert "'tiny' is another one here" in failure_of(store, job.request.id).detail


def test_a_model_whose_encoder_is_away_says_so(store: Store, context: WorkerContext, encoders: Encoders) -> None:
    ended(store, context._replace(encoders=encoders), job_of(store, dataset_of(store).id, encoders.id("tiny")))
    model = with_encoder(Models(store).load(Models(store).resolve("news")), Encoders({}))
    assert isinstance(model.vocabulary, PartColumns)
    with pytest.raises(Conflict, match="by the encoder 'tiny', which is not known here"):
        model.vocabulary.read(TextRows.of(["goal"]))


def read(
    store: Store, texts: Sequence[str], id: EncoderId, encoder: Encoder, watch: Watch | None = None
) -> tuple[WithVectors, str]:
    """Texts as a dataset, the last of them labeled, with vectors."""
    labels: list[str | None] = [None] * (len(texts) - 1)
    dataset = make_dataset(store, [Batch(TextRows.of(texts), [*labels, "sport"])]).id
    labeled = np.arange(len(texts)) == len(texts) - 1
    return with_vectors(store, dataset, TextRows.of(texts), labeled, id, encoder, watch or Watch(None), WHOLE), dataset


class Counting:
    """Makes vectors, and remembers the texts."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.texts, self.width = encoder, list[str](), encoder.width

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return self._encoder.encode(texts)


WORDS = [f"goal {'late ' * place}" for place in range(40)]


def test_a_text_is_read_once_whatever_dataset_it_is_in(store: Store, encoders: Encoders) -> None:
    id = encoders.id("tiny")
    encoder = Counting(encoders.load(id))
    read(store, ["", *WORDS[:20], *WORDS[:20]], id, encoder)
    assert encoder.texts[0] == WORDS[19], "the labeled first"
    assert sorted(encoder.texts) == sorted(WORDS[:20])
    appended, _ = read(store, ["", *WORDS], id, encoder)
    assert sorted(encoder.texts) == sorted(WORDS)
    vectors = parts_of(appended.rows)["vector.tiny"]
    assert isinstance(vectors, SparseRows)
    assert (appended.n_read, np.diff(vectors.indptr).tolist()) == (40, [0, *[3] * 40])
    np.testing.assert_allclose(vectors.values.reshape(-1, 3), encoders.load(id).encode(WORDS), rtol=1e-3)


def test_another_encoder_reads_anew(store: Store, encoders: Encoders) -> None:
    encoder = Counting(encoders.load(encoders.id("tiny")))
    for digest in "01":
        read(store, WORDS[:2], EncoderId("tiny", digest), encoder)
    assert len(encoder.texts) == 4


def test_what_was_made_before_a_stop_is_kept(store: Store, encoders: Encoders) -> None:
    seen: list[TracePoint] = []

    def stop(point: TracePoint) -> bool:
        seen.append(point)
        return True

    id = encoders.id("tiny")
    encoder, watch = Counting(encoders.load(id)), Watch(stop)
    watch._reported -= 1  # as if some time had gone by
    with pytest.raises(Stopped):
        read(store, WORDS, id, encoder, watch)
    assert (str(seen[0].phase), 0 < seen[0].fraction < 1, len(encoder.texts)) == ("vectors", True, 16)
    read(store, WORDS, id, encoder)
    assert sorted(encoder.texts) == sorted(WORDS)


def test_vectors_that_wait_for_a_full_store_are_lost_and_no_others(
    store: Store, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sixteen are kept at once here; the second time there is no room."""
    monkeypatch.setattr(encodings, "_KEPT_SECONDS", 0.0)
    id, upload, uploads = encoders.id("tiny"), store.upload, list[str]()

    def full(key: str, path: Path) -> File:
        uploads.append(key)
        if len(uploads) > 1:
            raise StoreUnavailable("the disk is full")
        return upload(key, path)

    encoder = Counting(encoders.load(id))
    dataset = make_dataset(
        store,
        [Batch(TextRows.of(WORDS), [None] * 40)],
    ).id
    arguments: Any = store, dataset, TextRows.of(WORDS), np.zeros(40, bool), id, encoder, Watch(None), WHOLE
    monkeypatch.setattr(store, "upload", full)
    with pytest.raises(StoreUnavailable):
        with_vectors(*arguments)
    monkeypatch.undo()
    assert with_vectors(*arguments).n_read == 40
    assert len(encoder.texts) == 32 + 24


def test_of_a_large_pool_a_part_is_read_at_a_time(store: Store, encoders: Encoders) -> None:
    """The labeled first, then the doubtful; a job more reads the next ones, and none is read twice. A long text counts
    by its ends. Where all may be read, nobody asks for margins.
    """
    id, asked = encoders.id("tiny"), list[int]()
    encoder, texts = Counting(encoders.load(id)), [*(f"goal {'late ' * 2000}{place}" for place in range(39)), "vote"]
    dataset = make_dataset(store, [Batch(TextRows.of(texts), [None] * 40)]).id
    labeled, margins = np.arange(40) == 39, np.arange(40.0)[::-1]

    def ask() -> NDArray[np.float64]:
        asked.append(len(encoder.texts))
        return margins

    def n_read(most_bytes: int) -> int:
        return with_vectors(
            store,
            dataset,
            TextRows.of(texts),
            labeled,
            id,
            encoder,
            Watch(None),
            WHOLE,
            most_bytes=most_bytes,
            margins=ask,
        ).n_read

    assert [n_read(20 * 1088), n_read(20 * 1088), n_read(1 << 20), n_read(1)] == [11, 21, 40, 40], "half of these bytes"
    assert (encoder.texts[0], sorted(encoder.texts[1:21])) == ("vote", sorted(texts[19:39]))
    assert (asked, len(encoder.texts)) == ([0, 11], 40)


def test_a_job_reads_the_doubtful_first(
    store: Store, context: WorkerContext, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = encoders.id("tiny")
    encoder = Counting(encoders.load(id))
    monkeypatch.setattr(encoders, "load", lambda id: encoder)
    monkeypatch.setattr(training, "with_vectors", partial(with_vectors, most_bytes=20 * 80))
    fractions: list[float] = []
    monkeypatch.setattr(Heartbeat, "observe", lambda self, point: fractions.append(point.fraction))
    clear, doubtful = ([f"{words} {place}" for place in range(30)] for words in ("goal goal", "goal vote"))
    labels = ["sport", "politics"] * 2 + [None] * 60
    dataset = make_dataset(
        store, [Batch(TextRows.of(["goal 1", "vote 1", "goal 2", "vote 2", *clear, *doubtful]), labels)]
    )
    job = ended(store, context._replace(encoders=encoders), job_of(store, dataset.id, id))
    assert job.outcome is not None, job
    assert job.outcome.report is not None, job.outcome
    seen = encoder.texts
    assert sorted(seen[:4]) == ["goal 1", "goal 2", "vote 1", "vote 2"]
    assert 4 < job.outcome.report["encoder"]["read"] == len(seen) < 64
    assert set(seen[4:]) <= set(doubtful)
    assert fractions == sorted(fractions), "progress never falls"


def test_a_job_whose_vectors_need_too_much_memory_reads_nothing(
    store: Store, context: WorkerContext, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wide:
        width = 1 << 30

    id = encoders.id("tiny")
    monkeypatch.setattr(encoders, "load", lambda id: Wide())
    job = ended(store, context._replace(encoders=encoders), job_of(store, dataset_of(store).id, id))
    assert "MiB of memory" in failure_of(store, job.request.id).detail


def test_vectors_of_another_dataset_outlive_it(store: Store, encoders: Encoders) -> None:
    id = encoders.id("tiny")
    encoder = Counting(encoders.load(id))
    _, first = read(store, WORDS, id, encoder)
    read(store, [*WORDS, "vote"], id, encoder)
    Datasets(store).delete(first)
    read(store, [*WORDS, "vote"], id, encoder)
    assert len(encoder.texts) == 41


def test_a_training_of_seconds_reads_for_half_of_them(
    store: Store, context: WorkerContext, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder takes a second for each text here; after two of four it is stopped, at the next sixteen."""
    id, now = encoders.id("tiny"), [time.monotonic()]
    encoder = Counting(encoders.load(id))

    class Slow:
        width = encoder.width

        def encode(self, texts: Sequence[str]) -> Vectors:
            now[0] += len(texts)
            return encoder.encode(texts)

    monkeypatch.setattr(training_inputs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(encoders, "load", lambda id: Slow())
    labels = ["sport", "politics"] * 2 + [None] * 36
    dataset = make_dataset(store, [Batch(TextRows.of(WORDS), labels)]).id
    ref = EncoderRef(name=id.name, digest=id.digest)
    draft = JobDraft(dataset=dataset, model="news", text={}, encoder=ref, options={"seconds": 4})
    job = ended(store, context._replace(encoders=encoders), Jobs(store).create(draft)[0].request.id)
    assert job.outcome is not None, job
    assert job.outcome.report is not None, job.outcome
    assert (job.outcome.report["encoder"]["read"], len(encoder.texts)) == (16, 16)


def test_a_text_that_was_not_read_has_no_vector(store: Store, encoders: Encoders) -> None:
    """Not so a labeled one, though its text repeats: before all of these were read, the texts have no vectors."""
    id, texts = encoders.id("tiny"), ["goal", "vote", "late", "", "goal", "vote"]
    dataset = make_dataset(store, [Batch(TextRows.of(texts), [None] * 6)]).id
    labeled = np.array([True, True, False, False, False, False])
    arguments = store, dataset, TextRows.of(texts), labeled, id, encoders.load(id), Watch(None), WHOLE
    found = with_vectors(*arguments, most_bytes=190)
    assert (found.n_read, list(parts_of(found.rows))) == (2, [FIELDS["text"]])
    found = with_vectors(*arguments, most_bytes=190)
    vectors = parts_of(found.rows)["vector.tiny"]
    assert isinstance(vectors, SparseRows)
    assert (found.n_read, found.n_texts) == (4, 5)
    assert np.diff(vectors.indptr).tolist() == [3, 3, 0, 0, 3, 3]
    np.testing.assert_array_equal(vectors.values.reshape(4, 3)[:2], [[1, 0, 0], [0, 2, 0]])
