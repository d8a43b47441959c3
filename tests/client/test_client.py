"""The client against a gateway: documents up, labels down, errors with a remedy, retries where they are safe."""

import asyncio
import io
import os
import pydoc
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import halfmoon
import msgspec
import numpy as np
import pandas as pd
import pytest
from halfmoon import (
    AsyncHalfmoon,
    Conflict,
    ConnectionFailed,
    Halfmoon,
    InvalidData,
    InvalidRequest,
    JobFailed,
    NotFound,
    TooManyRequests,
    WaitTimeout,
)

from storage.records import Version
from tests.app.conftest import Gateway, publish
from tests.http_servers import Handler, answering_by


@pytest.fixture
def hm(gateway: Gateway) -> Iterator[Halfmoon]:
    with Halfmoon(f"http://127.0.0.1:{gateway.port}", retries=0) as client:
        yield client


FRAME = pd.DataFrame(
    {"ticket": [7, 8, 9], "body": ["late, again", "a vote", "cup"], "topic": ["sport", None, "politics"]}
)


def test_datasets(hm: Halfmoon) -> None:
    data = hm.datasets.create(FRAME, text="body", label="topic", id="ticket", name="tickets")
    assert (len(data), data.record.classes, data.record.name) == (3, {"politics": 1, "sport": 1}, "tickets")
    assert "3 documents, 2 labeled" in repr(data)
    other = data.relabel({"8": "politics"})
    assert [each.id for each in hm.datasets.all()] == [other.id, data.id]
    assert hm.datasets.get(other.id).record == other.record
    assert [document["text"] for document in data.documents()] == list(FRAME["body"])
    assert data.annotate("8", "sport", by="ann") == 1
    assert data.annotate("9", action="skip") == 2
    assert [(entry.document, entry.label, entry.by) for entry in data.annotations()] == [
        ("8", "sport", "ann"),
        ("9", None, None),
    ]
    other.delete()
    with pytest.raises(NotFound) as error:
        hm.datasets.get(other.id)
    assert error.value.request_id in str(error.value)


@pytest.mark.parametrize("ending", [".zip", ".tar", ".tgz", ".tar.gz"])
def test_an_archive_of_texts_in_folders_named_by_class(hm: Halfmoon, tmp_path: Path, ending: str) -> None:
    texts = {"sport/a.txt": "late, again", "sport/b.txt": "cup", "politics/c.txt": "a vote", "unlabeled/d.txt": "école"}
    for name, text in texts.items():
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    kind = {".zip": "zip", ".tar": "tar"}.get(ending, "gztar")
    made = Path(shutil.make_archive(str(tmp_path / "made"), kind, tmp_path / "texts"))
    data = hm.datasets.create(made.rename(tmp_path / f"news{ending}"))
    assert (len(data), data.name, data.record.classes) == (4, "news", {"politics": 1, "sport": 2})
    assert sorted(document["text"] for document in data.documents()) == sorted(texts.values())


def test_help_is_two_screens_and_what_is_imported_is_of_the_client() -> None:
    assert len(pydoc.render_doc(halfmoon).splitlines()) < 90
    assert not {"Any", "TYPE_CHECKING"} & {*vars(halfmoon)}


def test_without_the_service_local_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfmoon.local.find_spec", lambda name: None)
    with pytest.raises(
        ConnectionFailed, match=r"--constraint constraints.txt '\.\[embedded,encoder\]' ./client; or run"
    ):
        Halfmoon.local()


def test_errors_name_what_is_wrong(hm: Halfmoon) -> None:
    with pytest.raises(InvalidRequest) as error:
        hm.datasets.create([{"text": "a"}, {"text": "b", "lable": "x"}, {"text": 7}, {"text": 8}])
    assert [each["field"] for each in error.value.errors] == ["lable", "text", "text"]
    assert str(error.value).endswith("line 3: must be a text, not an integer\n  document number 4: the same")
    assert "did you mean 'label'?" in str(error.value)
    assert error.value.type == "/problems/invalid-documents"


TEXT_AS_VERSION: Any = ("news", "3")
NAMES: dict[str, tuple[Callable[[Halfmoon], Any], str]] = {
    "no name": (lambda hm: hm.models[""], "model '': give its name or id"),
    "a path": (lambda hm: hm.models["a/b"], "model 'a/b': give its name or id"),
    "a path to train": (lambda hm: hm.train(["a"], "team/news"), "model 'team/news': a name has 1 to 128 letters"),
    "a number": (lambda hm: hm.models[3], "model 3: give its name or id"),  # type: ignore[index]
    "a version as text": (lambda hm: hm.models[TEXT_AS_VERSION], "a version is models['news', 3] by its number"),
    "an alias and a number": (lambda hm: hm.models["news@live", 3], "or models['news@live'] by an alias"),
    "no job": (lambda hm: hm.jobs.get(""), "job '': give its name or id"),
    "no dataset": (lambda hm: hm.datasets.get("../models"), "dataset '../models': give its name or id"),
    "no text": (lambda hm: hm.models["news"].predict(["a", None]), "document number 2 is None, no text; leave it out"),
    "a file as a text": (
        lambda hm: hm.models["news"].predict(__file__),
        "a text is a document; give pathlib.Path(",
    ),
    "no text, as of NumPy": (
        lambda hm: hm.models["news"].predict(np.array([np.nan, "a"], object)),
        "document number 1 is nan, no text; leave it out, or send an empty text: ''",
    ),
    "a label that is none": (
        lambda hm: hm.models["news"].evaluate(["a", "b"], label=["x", True]),
        "document number 2: the label True is a truth value",
    ),
    "a text that is none": (
        lambda hm: hm.models["news"].predict(pd.DataFrame({"text": ["a", 5]})),
        "document number 2: the text 5 is int, no text",
    ),
    "no webhook": (lambda hm: hm.webhooks.delete(""), "webhook '': give its name or id"),
    "documents to suggest": (
        lambda hm: hm.models["news"].suggest(FRAME),
        "a dataset is needed here, or its id, not DataFrame",
    ),
    "documents to explain": (
        lambda hm: hm.models["news"].explain(FRAME),
        "explain: give a list of texts or dicts, not DataFrame",
    ),
    "held out of other data": (lambda hm: hm.models["news"].evaluate(["a"], held_out=True), "held_out needs a dataset"),
    "labels of a dataset": (
        lambda hm: hm.models["news"].evaluate("ds-1", label="topic"),
        "text, label, features and extra are for other data",
    ),
    "a file to train on": (lambda hm: hm.train("news.csv", "news"), "there is no file 'news.csv'"),
    "a complex number": (
        lambda hm: hm.train("ds-1", "news", options={"lambda": 1j}),
        "1j is complex, which a request cannot hold",
    ),
    "no folder": (lambda hm: hm.models["news", 1].export("nowhere/news.zip"), "there is no folder 'nowhere'"),
    "an address without http": (lambda _: Halfmoon("127.0.0.1:8000"), "begins with http:// or https://"),
    "an address of FTP": (lambda _: Halfmoon("ftp://x"), "begins with http:// or https://"),
    "a key that cannot be": (lambda _: Halfmoon(key="schl\u00fcssel"), "the API key has characters"),
    "a folder": (lambda hm: hm.models["news", 1].export("/"), "'/' is a folder; name a file in it"),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_asked_is_not_sent(name: str) -> None:
    call, said = NAMES[name]
    with Halfmoon("http://127.0.0.1:9", retries=0) as hm, pytest.raises(InvalidData) as refused:
        call(hm)
    assert said in str(refused.value)


def test_values_of_numpy_are_sent(hm: Halfmoon) -> None:
    data = hm.datasets.create([{"vector": [1, 2]}, {"vector": [2, 1]}], label=list(np.array([1, 2])))
    assert data.annotate(0, np.array([2])[0]) == 1
    assert [(entry.document, entry.label) for entry in data.annotations()] == [("0", 2)]
    with pytest.raises(InvalidData, match="names no document; give its id, or a suggestion"):
        data.annotate({"text": "a"}, 1)
    with pytest.raises(InvalidData, match="labels: give them by document id"):
        data.relabel([1, 2])  # type: ignore[arg-type]


def test_documents_of_a_refused_training_are_not_kept(hm: Halfmoon) -> None:
    with pytest.raises(InvalidRequest, match="did you mean 'tsvm'"):
        hm.train(["a", "b"], "news", algorithm="tsvmm")
    assert list(hm.datasets.all()) == []
    assert (
        hm.train([{"text": "a", "label": "x"}, {"text": "b", "label": "y"}], "news").record.dataset
        == hm.datasets["news"].id
    ), "data of no name take the model's"


def test_notebooks_show_what_the_service_has(hm: Halfmoon, gateway: Gateway, version: Version) -> None:
    model = hm.models["news"]
    model.aliases["live"] = 1
    shown = {each: each._repr_html_() for each in (hm.models, hm.jobs, hm.datasets)}
    assert "<td>news</td><td>1</td><td>1</td><td>live</td>" in shown[hm.models]
    assert version.job in shown[hm.jobs]
    assert version.dataset in shown[hm.datasets]
    assert "<td>live</td><td>1</td>" in model.aliases._repr_html_()
    assert "Model news, version 1" in model._repr_html_()
    assert repr(model.aliases) == "<Aliases {'live': 1}>"
    assert repr(hm.models) == "<Models: news>"
    assert repr(hm.jobs) == "<Jobs: news succeeded>"
    assert repr(hm.datasets) == f"<Datasets: {version.dataset}>"
    documents = [{"indices": [1]}, {"indices": [0]}, {"indices": [1]}]
    predicted = model.predict(documents)
    assert repr(predicted) == "<Prediction of 3 documents by news version 1: 2 yes, 1 no>"
    assert repr(model.explain(documents)) == "<Explanation of news version 1: classes no, yes; 3 documents>"
    assert repr(model.explain(documents[0])) == repr(model.explain(documents[:1]))
    evaluation = model.evaluate([{"indices": [1], "label": "yes"}, {"indices": [0], "label": "no"}])
    assert repr(evaluation) == "<Evaluation of news version 1: error 0.000, 2 labeled documents>"


def test_lists_of_a_service_that_is_away_are_shown_all_the_same() -> None:
    with Halfmoon("http://127.0.0.1:9", retries=0) as away:
        assert repr(away.datasets).startswith("<Datasets: unknown, ")


def test_help_begins_with_what_there_is(hm: Halfmoon, gateway: Gateway, version: Version) -> None:
    """Two screens say it all, and each name in them is one of the client's."""
    objects = {
        "hm": hm,
        "data": hm.datasets.get(version.dataset),
        "job": hm.jobs.get(version.job),
        "model": hm.models["news"],
    }
    words = halfmoon.__doc__ or ""
    named = re.findall(r"\b(hm|data|job|model)\.(\w+)", words)
    assert len(named) > 15
    assert [f"{which}.{name}" for which, name in named if not hasattr(objects[which], name)] == []
    assert all(hasattr(halfmoon, name) for name in re.findall(r"\b[A-Z]\w+[a-z][A-Z]\w+", words))
    assert len(words.splitlines()) < 60


def test_models(hm: Halfmoon, gateway: Gateway) -> None:
    version = publish(gateway.store, calibrated=True)
    model = hm.models["news"]
    prediction = model.predict([{"indices": [1]}, {"indices": [0]}])
    assert (prediction.labels, len(prediction), model.version) == (["yes", "no"], 2, 1)
    assert list(prediction.to_pandas().columns) == ["label", "no", "yes"]
    named = model.predict([{"indices": [1]}, {"indices": [0], "id": 7}])
    assert (named.ids, list(named.to_pandas().columns)) == (["0", "7"], ["id", "label", "no", "yes"])
    model.aliases["live"] = 1
    assert (dict(model.aliases), hm.models["news@live"].version) == ({"live": 1}, 1)
    assert hm.models["news", 1].predict([{"indices": [1]}]).version == 1
    assert model.info().job == version.job
    evaluation = model.evaluate([{"indices": [1], "label": "yes"}, {"indices": [0], "label": "no"}])
    assert evaluation.accuracy == 1
    assert "<svg" in evaluation.page
    del model.aliases["live"]
    assert [summary.name for summary in hm.models.all()] == ["news"]
    assert hm.jobs.get(version.job).labels().to_dict() == {"c": "yes"}
    model.delete()
    assert list(hm.models.all()) == []


def test_labels_are_saved_as_the_service_writes_them(hm: Halfmoon, gateway: Gateway, tmp_path: Path) -> None:
    job = hm.jobs.get(publish(gateway.store).job)

    def saved(*arguments: Any) -> io.BytesIO:
        file = io.BytesIO()
        job.save_labels(file, *arguments)
        return io.BytesIO(file.getvalue())

    label = {"id": "c", "label": "yes", "score": 1.0}
    assert pd.read_csv(saved()).dropna(axis=1).to_dict("records") == [label]
    assert msgspec.json.decode(saved("ndjson").read()) == {**label, "probability": None}
    with pytest.raises(InvalidData, match="labels are written as csv, ndjson, parquet"):
        job.save_labels(io.BytesIO(), "xlsx")  # type: ignore[arg-type]
    (tmp_path / "out").mkdir()
    (tmp_path / "link.csv").symlink_to("out/labels.csv")
    job.save_labels(tmp_path / "link.csv")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"labels.csv": saved().getvalue()}
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    job.save_labels(pipe)
    assert os.read(reader, 1 << 16) == saved().getvalue(), "pipes and devices are written to, not replaced"
    os.close(reader)
    assert pd.read_parquet(saved("parquet")).dropna(axis=1).to_dict("records") == [label]


def test_jobs_that_do_not_succeed(hm: Halfmoon) -> None:
    data = hm.datasets.create(FRAME, text="body", label="topic")
    job = hm.train(data, "tickets", idempotency_key="one")
    assert hm.train(data, "tickets", idempotency_key="one").id == job.id
    with pytest.raises(WaitTimeout, match="it goes on"):
        job.wait(0.05)
    with pytest.raises(Conflict):
        job.labels()
    job.cancel()
    assert job.refresh().state in ("cancelling", "cancelled")


@pytest.mark.usefixtures("version")
def test_the_one_that_is_awaited(gateway: Gateway) -> None:

    async def act() -> list[Any]:
        async with AsyncHalfmoon(f"http://127.0.0.1:{gateway.port}") as hm:
            data = await hm.datasets.create(FRAME, text="body")
            prediction = await hm.models["news"].predict([{"indices": [1]}])
            return [len(data), prediction.labels, data.id in [each.id async for each in hm.datasets.all()]]

    assert asyncio.run(act()) == [3, ["yes"], True]


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers one after the other, and breaks off the connection for status 0; its address,
    and the requests.
    """
    waiting, seen = list(answers), []

    class Answers(Handler):
        def do_POST(self) -> None:
            seen.append(self.posted().decode())
            status, headers, body = waiting.pop(0)
            if status:
                self.answer(status, body, **headers)
            else:
                self.close_connection = True

    with answering_by(Answers) as url:
        yield url, seen


BUSY: Answer = (503, {"Retry-After": "0"}, b'{"detail": "busy"}')
PREDICTED: Answer = (
    200,
    {},
    b'{"model":"m","version":1,"classes":["a"],"labels":["a"],"scores":[[1]],"probabilities":null,"warnings":[]}',
)
BROKEN: Answer = (0, {}, b"")


def test_retries() -> None:
    with answering(BUSY, BROKEN, PREDICTED) as (url, seen), Halfmoon(url) as hm:
        assert hm.models["m"].predict(["x"]).labels == ["a"]
        assert seen == ['{"documents":[{"text":"x"}]}'] * 3


def test_what_changes_something_is_not_sent_again_after_a_break() -> None:
    with answering(BROKEN, BROKEN) as (url, seen), Halfmoon(url) as hm:
        with pytest.raises(ConnectionFailed, match="broke off"):
            hm.datasets.create(["x"])
        assert len(seen) == 1


def test_in_the_end_it_gives_up() -> None:
    with (
        answering(*[(429, {"Retry-After": "0", "X-Request-ID": "r7"}, b'{"detail": "too many"}')] * 2) as (url, _),
        Halfmoon(url, retries=1) as hm,
    ):
        with pytest.raises(TooManyRequests, match=r"too many \(429, request r7\)") as error:
            hm.models["m"].predict(["x"])
        assert error.value.retry_after == 0


def test_no_service() -> None:
    with (
        Halfmoon("http://127.0.0.1:1", retries=0) as hm,
        pytest.raises(ConnectionFailed, match="start it by `halfmoon up`"),
    ):
        hm.live()


def test_a_failed_job_says_why() -> None:
    assert str(JobFailed("job-1", "failed", {"detail": "no labels"})) == "job job-1 failed: no labels"
    assert str(JobFailed("job-1", "cancelled", None)) == "job job-1 was cancelled"
