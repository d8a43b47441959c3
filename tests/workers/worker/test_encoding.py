"""Jobs whose texts get vectors of an encoder: made once, kept, and made of new texts by the model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.documents.kinds import PartRows, TextRows
from core.documents.part_columns import EncoderId, PartColumns
from core.progress import WHOLE, TracePoint
from core.watch import Stopped, Watch
from storage.errors import Conflict
from storage.records import Dataset, EncoderRef, Job, JobDraft, JobState, Publication
from storage.repositories.datasets import Batch, Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.stores import make_dataset
from tests.workers.encoders.tiny import TABLE, static_folder
from workers.encoders.catalogue import Encoders
from workers.encoders.rows import with_encoder
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.encoding import with_vectors

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


def job_of(store: Store, dataset: str, encoder: EncoderId) -> str:
    ref = EncoderRef(name=encoder.name, digest=encoder.digest)
    return (
        Jobs(store)
        .submit(JobDraft(dataset=dataset, model="news", algorithm="auto", text={}, encoder=ref))[0]
        .request.id
    )


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
    assert (version.facts["parts"], version.facts["encoder"]) == ("text, vector.tiny", "tiny")
    model = with_encoder(Models(store).load(version), encoders)
    read = model.vocabulary.read(TextRows.of(["goal", "vote", ""]))
    assert [model.classes[place] for place in model.labels_of(model.scores(read.rows))[:2]] == ["sport", "politics"]
    assert read.missing == {"text": 1}
    assert np.diff(read.rows.indptr).tolist() == [4, 4, 3]
    assert model.vocabulary.encodes


def test_a_start_from_a_model_with_an_encoder(store: Store, context: WorkerContext, encoders: Encoders) -> None:
    """Its weights of terms and of vectors are carried over: at the minimum already, the solver has nothing to do."""
    dataset, id = dataset_of(store).id, encoders.id("tiny")
    iterations = []
    ref = EncoderRef(name=id.name, digest=id.digest)
    for start in (None, Publication(name="news", version=1)):
        job = Jobs(store).submit(
            JobDraft(dataset=dataset, model="news", algorithm="svm", text={}, encoder=ref, start=start)
        )[0]
        done = ended(store, context._replace(encoders=encoders), job.request.id)
        assert done.outcome is not None
        assert done.outcome.progress is not None, done.outcome
        iterations.append(done.outcome.progress.iteration)
    assert iterations[0] > iterations[1] == 0


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
    assert job.outcome is not None
    assert job.outcome.comparison is not None
    assert job.outcome.comparison.against == 1
    assert store.children(f"datasets/{dataset.id}/encodings")


def test_another_encoder_of_the_name_fails_the_job(
    store: Store, context: WorkerContext, encoders: Encoders, tmp_path: Path
) -> None:
    id = encoders.id("tiny")
    others = Encoders({"tiny": static_folder(tmp_path / "other", TABLE * 3)})
    job = ended(store, context._replace(encoders=others), job_of(store, dataset_of(store).id, id))
    assert job.state is JobState.FAILED
    assert job.outcome is not None
    assert job.outcome.error is not None
    assert "'tiny' is another one here" in job.outcome.error.detail


def test_a_model_whose_encoder_is_away_says_so(store: Store, context: WorkerContext, encoders: Encoders) -> None:
    ended(store, context._replace(encoders=encoders), job_of(store, dataset_of(store).id, encoders.id("tiny")))
    model = with_encoder(Models(store).load(Models(store).resolve("news")), Encoders({}))
    assert isinstance(model.vocabulary, PartColumns)
    with pytest.raises(Conflict, match="by the encoder 'tiny', which is not known here"):
        model.vocabulary.read(TextRows.of(["goal"]))


def test_making_vectors_can_be_stopped_and_leaves_nothing(store: Store, encoders: Encoders) -> None:
    seen: list[TracePoint] = []

    def stop(point: TracePoint) -> bool:
        seen.append(point)
        return True

    dataset, id = dataset_of(store), encoders.id("tiny")
    watch = Watch(stop)
    watch._reported -= 1  # as if some time had gone by
    with pytest.raises(Stopped):
        with_vectors(store, dataset.id, TextRows.of(TEXTS), id, encoders.load(id), watch, WHOLE)
    assert (str(seen[0].phase), 0 < seen[0].fraction < 1) == ("vectors", True)
    assert not store.children(f"datasets/{dataset.id}/encodings")
    made = with_vectors(
        store, dataset.id, PartRows({"text": TextRows.of(TEXTS)}), id, encoders.load(id), Watch(None), WHOLE
    )
    assert list(made.parts) == ["text", "vector.tiny"]
