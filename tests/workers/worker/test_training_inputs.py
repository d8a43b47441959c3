"""Jobs on text and on named features, in this process: their models read new documents as in the training."""

import json
import time
from typing import Any

import numpy as np
import pytest

from core.documents.kinds import NamedRows, PartRows, TextRows
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import SPACES
from core.documents.vocabulary import Names
from core.memory_estimate import RowsSize, _Language
from core.options.text import TextOptions
from core.problem import Status
from core.progress import Phase, Stopped, TracePoint, Watch
from storage.records import Dataset, Job, JobDraft, JobState, Publication
from storage.repositories.datasets import Batch, Datasets
from storage.repositories.datasets.labels import LabelLists
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.calls import noted
from tests.stores import failure_of, make_dataset, outcome_of, rows, submit
from tests.there import there
from tests.waiting import SOON, until
from tests.workers.worker.attempts import Faked, attempted, in_thread, texts, trained, with_settings
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.heartbeat import Heartbeat
from workers.worker.training import ChosenEngine
from workers.worker.training_inputs import TextEngine, training_inputs

N_BYTES = 2**40


def text_dataset(store: Store, labeled: int = 6, **given: Any) -> Dataset:
    found = texts(**given)
    labels = [("sport", "politics")[place % 2] if place < labeled else None for place in range(len(found))]
    return make_dataset(store, [Batch(TextRows.of(found), labels)])


def named(documents: list[str]) -> NamedRows:
    """Bags of words."""
    names = sorted({word for document in documents for word in document.split()})
    bags = [
        {names.index(word): float(document.split().count(word)) for word in sorted(set(document.split()))}
        for document in documents
    ]
    return NamedRows(rows(*bags, n_features=len(names)), names)


def test_a_job_on_texts_with_vectors_reads_both(store: Store, context: WorkerContext) -> None:
    found, generator = texts(), np.random.default_rng(1)
    sides = np.array([1.0 if place % 2 else -1.0 for place in range(len(found))])
    vectors = np.column_stack([sides, generator.normal(size=(len(found), 2))])
    parts = PartRows(
        {
            "text": TextRows.of(found),
            "vector": rows(*[dict(enumerate(map(float, vector))) for vector in vectors], n_features=3),
        }
    )
    labels = [("sport", "politics")[place % 2] if place < 6 else None for place in range(len(found))]
    job = finished(
        store,
        context,
        submit(store, dataset=make_dataset(store, [Batch(parts, labels)]).id, model="m", algorithm="auto"),
    )
    model = Models(store).load(Models(store).resolve("m"))
    assert Models(store).resolve("m").kind == "parts"
    assert job.outcome is not None
    fresh = PartRows({"text": TextRows.of(["goal keeper", ""]), "vector": rows({}, {0: 1.0}, n_features=3)})
    read = model.vocabulary.read(fresh)
    assert [model.classes[place] for place in model.labels_of(model.scores(read.rows))] == ["sport", "politics"]
    assert read.missing == {"text": 1, "vector": 1}


def finished(store: Store, context: WorkerContext, id: str) -> Job:
    Attempts(context).run(id)
    job = Jobs(store).get(id)
    assert job.state is JobState.SUCCEEDED, job.outcome
    return job


def labels_of(store: Store, job: Job) -> list[str]:
    return [json.loads(line)["label"] for line in store.read(there(job.outcome).files["labels"].key).splitlines()]


@pytest.mark.parametrize("algorithm", ["svm", "tsvm", "kernel_svm", "auto"])
def test_a_model_of_text_reads_text(store: Store, context: WorkerContext, algorithm: str) -> None:
    dataset = text_dataset(store)
    job = finished(store, context, submit(store, dataset=dataset.id, algorithm=algorithm))
    wrong = [
        place for place, label in enumerate(labels_of(store, job), start=6) if label != ("sport", "politics")[place % 2]
    ]
    assert len(wrong) <= 1  # a fraction of the 74 that is estimated at .508 makes one label
    version = Models(store).resolve("news")
    model = Models(store).load(version)
    assert (version.kind, version.n_features) == ("text", version.facts["n_terms"])
    assert version.facts["n_words"] == 13
    read = model.vocabulary.read(TextRows.of(["The KEEPER of the match!", "a minister", "nobody knows"]))
    found = model.scores(read.rows)
    assert [version.classes[place] for place in model.labels_of(found)[:2]] == ["sport", "politics"]
    assert (read.unknown, read.n_values) == (3, 8)
    assert list(store.staging().parent.glob("*/*")) == []


@pytest.mark.parametrize("kind", ["single", "nested", "several"])
def test_labels_of_weight_0_are_left_out_of_a_training(store: Store, context: WorkerContext, kind: str) -> None:
    given = [("a/sport", "a/politics")[place % 2] if place < 12 else None for place in range(80)]
    weights = np.where(np.arange(80) < 2, 0.0, 1.0)
    lists = LabelLists([None if label is None else [label] for label in given], [None] * 80)
    batch = Batch(TextRows.of(texts()), given, weights=weights)
    if kind == "several":
        batch = batch._replace(labels=[None] * 80, label_lists=lists)
    nested = kind == "nested"
    draft = JobDraft(
        dataset=make_dataset(store, [batch]).id, model="news", algorithm="auto", options={}, text=None, nested=nested
    )
    finished(store, context, Jobs(store).create(draft)[0].request.id)
    left_out = Models(store).held_out(Models(store).resolve("news"))
    assert there(left_out).positions.tolist() == list(range(2, 12))


def test_a_model_of_named_features_reads_them(store: Store, context: WorkerContext) -> None:
    given = named(texts())
    dataset = make_dataset(
        store, [Batch(given, [("sport", "politics")[place % 2] if place < 6 else None for place in range(80)])]
    )
    job = finished(store, context, submit(store, dataset=dataset.id, algorithm="tsvm"))
    assert labels_of(store, job) == [("sport", "politics")[place % 2] for place in range(6, 80)]
    version = Models(store).resolve("news")
    model = Models(store).load(version)
    stored = Datasets(store).open(dataset.id).rows
    np.testing.assert_array_equal(
        model.scores(model.vocabulary.read(stored).rows), model.scores(model.vocabulary.read(given).rows)
    )
    asked = NamedRows(rows({0: 1.0, 1: 1.0}, n_features=2), ["never", "keeper"])
    read = model.vocabulary.read(asked)
    assert (version.kind, version.facts["n_names"], read.unknown, read.n_values) == ("features", 13, 1, 2)
    assert [version.classes[place] for place in model.labels_of(model.scores(read.rows))] == ["sport"]


def test_labels_change_and_terms_stay(store: Store, context: WorkerContext) -> None:
    dataset = text_dataset(store)
    finished(store, context, submit(store, dataset=dataset.id))
    changed = Datasets(store).relabel(dataset.id, {"10": "sport"})
    finished(store, context, submit(store, dataset=changed.id, start=Publication(name="news", version=1)))
    one, two = (Models(store).load(version).vocabulary.to_arrays() for version in Models(store).versions("news"))
    assert one[1] == two[1]
    np.testing.assert_array_equal(one[0]["term_keys"], two[0]["term_keys"])
    np.testing.assert_array_equal(one[0]["term_idf"], two[0]["term_idf"])


@pytest.mark.parametrize("algorithm", ["svm", "ramp_svm"])
@pytest.mark.parametrize("kind", ["text", "features"])
def test_a_start_is_told_by_its_terms(
    store: Store, context: WorkerContext, kind: str, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new documents have terms that the old ones had not, before theirs in the alphabet, and lack some:
    coefficients go by name.
    """
    import core.train

    given: list[Any] = []
    train = core.train.train

    def told(task: core.train.TrainingTask, context: core.train.TrainingContext) -> core.train.Training:
        rows = task.rows
        given.append(
            (
                SparseRows(np.array(rows.indptr), np.array(rows.indices), np.array(rows.values), rows.n_features),
                task.start,
            )
        )
        return train(task, context)

    monkeypatch.setattr(core.train, "train", told)
    labels = [("sport", "politics")[place % 2] if place < 6 else None for place in range(80)]
    for extra in ("zebra", "aardvark"):
        content = TextRows.of(texts(extra=extra)) if kind == "text" else named(texts(extra=extra))
        dataset = make_dataset(store, [Batch(content, labels)])
        start = None if extra == "zebra" else Publication(name="news", version=1)
        job = finished(store, context, submit(store, dataset=dataset.id, algorithm=algorithm, start=start))
    assert not any("no use" in warning for warning in there(job.outcome).warnings)
    (read, moved), (old, new) = given[-1], (Models(store).load(version) for version in Models(store).versions("news"))
    names = there(new.vocabulary.named(np.arange(new.n_features)))
    assert any("aardvark" in name for name in names)
    by_name = NamedRows(read, names)
    known = there(old.vocabulary.named(np.arange(old.n_features)))
    # the old model, asked about the new rows by name, says what the moved one does
    np.testing.assert_allclose(moved.scores(read), old.scores(Names(known).read(by_name).rows), rtol=1e-5, atol=1e-6)
    assert moved.scores_and_unseen(read)[1] > 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["我们赢了决赛", "议会通过预算", "议会讨论"], f"no word occurs in 2 or more of the 3 documents; {SPACES}"),
        (
            ["one", "two", "three"],
            "no word occurs in 2 or more of the 3 documents; send more text, or lower text.min_documents",
        ),
        (["!", "a", ""], "none of the 3 documents has a word: two or more letters or digits in a row"),
    ],
)
def test_text_without_terms_fails_by_name(store: Store, context: WorkerContext, given: list[str], told: str) -> None:
    dataset = make_dataset(store, [Batch(TextRows.of(given), ["a", "b", None])])
    id = attempted(store, context, dataset=dataset.id)
    error = failure_of(store, id)
    assert (error.status, error.type) == (422, "/problems/invalid-documents")
    assert error.detail == told


@pytest.mark.parametrize(
    ("options", "left", "told"),
    [({}, 3, "a term must occur in 2 documents (text.min_documents)"), ({"min_documents": 1}, 1, "they have no word")],
)
def test_texts_without_terms_are_told(
    store: Store, context: WorkerContext, options: dict[str, int], left: int, told: str
) -> None:
    found = [*texts(), "我爱北京天安门", "上海外滩", "! 🎉"]
    labels = [("sport", "politics")[place % 2] if place < 6 else None for place in range(len(found))]
    dataset = make_dataset(store, [Batch(TextRows.of(found), labels)])
    outcome = there(
        finished(
            store, context, submit(store, dataset=dataset.id, algorithm="svm", text={"ngrams": 1, **options})
        ).outcome
    )
    assert outcome.warnings == [f"{left} of the 83 texts have none of the terms, so nothing tells them apart; {told}"]


@pytest.mark.parametrize(("space", "warned"), [("", True), (" ", False)])
def test_clauses_without_spaces_are_told(store: Store, context: WorkerContext, space: str, warned: bool) -> None:
    clauses = [["我们", "赢了", "最后", "一场", "决赛"], ["议会", "通过了", "新的", "预算", "方案"]]
    texts = [f"{space.join(clause)}。{space.join(clause[::-1])}" for clause in clauses] * 3
    dataset = make_dataset(store, [Batch(TextRows.of(texts), ["a", "b", *[None] * 4])])
    outcome = there(finished(store, context, submit(store, dataset=dataset.id, algorithm="svm")).outcome)
    assert outcome.warnings == ([f"the texts have few spaces: {SPACES}"] if warned else [])


def test_terms_that_take_too_much_memory_end_the_job(store: Store, context: WorkerContext) -> None:
    words = [" ".join(f"w{place}x{word}" for word in range(400)) for place in range(800)]
    dataset = make_dataset(store, [Batch(TextRows.of(words), ["a", "b", *[None] * 798])])
    most = RowsSize.of(TextRows.of(words), {}).making_bytes + 2**19  # words that all differ are more than is expected
    id = submit(store, dataset=dataset.id, algorithm="svm", text={"max_terms": 1000})
    Attempts(with_settings(context._replace(max_job_bytes=most), engine="memory")).run(id)
    error = failure_of(store, id)
    assert (error.status, error.type) == (413, "/problems/job-too-large")
    assert "set text.ngrams to 1" in error.detail


def test_terms_that_outgrow_memory_go_to_files(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the setting, or against the estimate: the job succeeds, its report says so, and the model is the same as in
    memory to the bit.
    """
    monkeypatch.setattr("core.documents.text.batches.SPAN_BYTES", 1 << 15)
    monkeypatch.setattr("core.memory_estimate._MOST_TABLES", 1 << 19)
    # memory is expected to suffice, and the training needs little
    monkeypatch.setattr("core.memory_estimate._LANGUAGES", {2: _Language(0, 1, 0)})
    monkeypatch.setattr("core.memory_estimate._LEAST_TABLES", 0)
    monkeypatch.setattr("workers.worker.training.EngineChoice.of", lambda *_: ChosenEngine("memory", 0))
    words = np.random.default_rng(0).integers(0, 600, (900, 100)).tolist()
    dataset = make_dataset(
        store, [Batch(TextRows.of([" ".join(map("w{}".format, text)) for text in words]), ["a", "b", *[None] * 898])]
    )
    engines: list[tuple[Any, int]] = [
        ("memory", 2**34),
        ("mapped", 2**34),
        ("auto", 2**34),
        ("auto", 2**26 + 3 * 2**19),
    ]
    found = []
    for engine, most in engines:
        own = with_settings(context._replace(max_job_bytes=most), engine=engine)
        job = finished(store, own, submit(store, dataset=dataset.id, algorithm="svm", text={"max_terms": 2000}))
        found.append(there(outcome_of(store, job.request.id).report)["terms_engine"])
    assert found == ["memory", "mapped", "memory", "mapped"]
    digests = [
        (version.files["model"].sha256, version.files["model_meta"].sha256)
        for version in Models(store).versions("news")
    ]
    assert digests == [digests[0]] * len(engines)


@pytest.mark.usefixtures("every_report")
@pytest.mark.parametrize("engine", [TextEngine("memory"), TextEngine("mapped", 1 << 20)], ids=["memory", "mapped"])
def test_reading_is_told_and_a_stop_is_heard(store: Store, monkeypatch: pytest.MonkeyPatch, engine: TextEngine) -> None:
    monkeypatch.setattr("core.documents.text.batches.SPAN_ROWS", 50)
    content, points = TextRows.of(texts(1000)), []

    def observe(point: TracePoint, /) -> bool:
        points.append(point)
        return len(points) == stop_at

    stop_at = 10**9
    began = time.monotonic() - 100
    with training_inputs(
        store, content, TextOptions().model_dump(), Watch(observe, began=began), N_BYTES, engine, threads=1
    ) as read:
        rest = Watch(observe, read.rest, began)
        rest.latest = rest.latest._replace(phase=Phase("mfn"), fraction=0.5)
        rest()
        rest.end(rest.latest)
    fractions = [point.fraction for point in points]
    assert fractions == sorted(fractions)
    assert fractions[-2:] == [0.625, 1.0]
    seconds = [point.seconds for point in points]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 100
    assert {str(point.phase) for point in points} == {"terms", "mfn"}
    n_points = len(points)
    for stop_at in range(1, n_points - 2, 5):
        points.clear()
        with (
            pytest.raises(Stopped),
            training_inputs(store, content, {}, Watch(observe), N_BYTES, engine, threads=1),
        ):
            pytest.fail("it was not heard")
        assert len(points) == stop_at
    assert list(store.staging().parent.glob("*/*")) == []


@pytest.mark.usefixtures("every_report")
def test_one_clock_from_the_reading_to_the_end(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = noted(monkeypatch, Heartbeat, "observe", lambda _, point: point)
    job = finished(store, context, submit(store, dataset=text_dataset(store).id, algorithm="tsvm"))
    assert str(points[0].phase) == "terms"
    for course in ([point.seconds for point in points], [point.fraction for point in points]):
        assert course == sorted(course)
    trace = json.loads(store.read(there(job.outcome).files["trace"].key))
    assert min(point["fraction"] for point in trace) >= 0.25
    assert trace[0]["seconds"] >= max(point.seconds for point in points if str(point.phase) == "terms")
    assert {str(point.phase) for point in points} >= {"terms", "tsvm"}


@pytest.mark.usefixtures("every_report")
def test_a_cancel_during_the_reading_ends_the_job(
    store: Store, context: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text is read on after the cancel; fails if it is read to its end, and the training runs."""
    fake.append(lambda observer: trained(Status.CONVERGED))
    observe = Heartbeat.observe

    def held(heartbeat: Heartbeat, point: TracePoint, /) -> bool:
        observe(heartbeat, point)
        until(lambda: heartbeat.reason)
        return observe(heartbeat, point)

    monkeypatch.setattr(Heartbeat, "observe", held)
    id = submit(store, dataset=text_dataset(store).id)
    thread = in_thread(lambda: Attempts(context).run(id))
    until(
        lambda: (
            (found := context.redis_state.progress(id)) is not None and found.phase == "finding the terms of the texts"
        )
    )
    Jobs(store).cancel(id)
    context.redis_state.request_cancel(id)
    thread.join(SOON)
    assert Jobs(store).get(id).state is JobState.CANCELLED
