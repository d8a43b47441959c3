"""A version as a file: by the call, the client and the command."""

import os
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from halfmoon import Halfmoon

from app.cli.commands import main
from app.models import routes
from core.exports import predict
from core.exports.archive import write_archive
from core.models.model import LinearModel
from tests.app.conftest import Gateway, Start, problem_of, publish, text_model
from tests.waiting import SOON

TEXTS = ["late vote vote", "", "goal"]


def test_the_file_says_what_the_service_says(
    gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(gateway.store, model=text_model())
    answer = gateway.client.get("/v1/models/news/versions/1/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"] == 'attachment; filename="news-1.zip"'
    monkeypatch.chdir(tmp_path)
    with Halfmoon(str(gateway.client.base_url), retries=0) as hm:
        path = hm.models["news"].export()
        assert (path, path.read_bytes()) == (Path("news-1.zip"), answer.content)
        predicted = hm.models["news"].predict(TEXTS)
    classifier = predict.load(path)
    assert classifier.decision_function(TEXTS).tolist() == [list(each) for each in predicted.scores]
    assert classifier.predict(TEXTS) == list(predicted.labels)
    about = classifier.meta
    assert (about["name"], about["version"], about["kind"], about["classes"]) == (
        "news",
        1,
        "text",
        ["politics", "sport"],
    )
    assert (
        main(["export", "news:1", "--format", "onnx", "--out", "graph.onnx", "--url", str(gateway.client.base_url)])
        == 0
    )
    assert capsys.readouterr().out == "graph.onnx\n"
    session = onnxruntime.InferenceSession("graph.onnx")
    scores = session.run(["scores"], {"X": classifier.rows(TEXTS).dense()})[0]
    np.testing.assert_allclose(scores, classifier.decision_function(TEXTS), rtol=1e-12)
    assert sorted(os.listdir()) == ["graph.onnx", "news-1.zip", "store"]
    assert "predict.py" in zipfile.ZipFile(path).namelist()


def test_files_are_written_beside_the_store(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the system is memory in some containers."""
    publish(gateway.store, model=text_model())
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    assert gateway.client.get("/v1/models/news/versions/1/export").status_code == 200
    assert gateway.client.get("/v1/models/news/versions/1/export?format=onnx").status_code == 200


def test_so_many_exports_at_a_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = start(max_concurrent_exports_per_caller=1)
    publish(gateway.store, model=text_model())
    writing, go_on = threading.Event(), threading.Event()

    def slowly(*arguments: Any) -> None:
        writing.set()
        assert go_on.wait(SOON)
        write_archive(*arguments)

    monkeypatch.setattr(routes, "write_archive", slowly)
    path, answers = "/v1/models/news/versions/1/export", []
    thread = threading.Thread(target=lambda: answers.append(gateway.client.get(path)))
    thread.start()
    assert writing.wait(SOON)
    refused = gateway.client.get(path)
    go_on.set()
    thread.join()
    assert refused.headers["ratelimit-policy"] == '"exports of one caller";q=1;qu="concurrent-requests"'
    problem_of(refused, 429)
    assert answers[0].status_code == 200
    assert gateway.client.get(path).status_code == 200, "what was sent is given back"


def test_what_is_refused(gateway: Gateway) -> None:
    wide = LinearModel(["a", "b"], 2**31, np.array([5], np.uint32), np.ones((1, 1)), np.zeros(1))
    publish(gateway.store, model=wide)
    problem = problem_of(gateway.client.get("/v1/models/news/versions/1/export?format=onnx"), 422)
    assert problem["errors"][0]["field"] == "format"
    assert "use format=numpy" in problem["detail"]
    problem = problem_of(gateway.client.get("/v1/models/news/versions/1/export?format=pmml"), 422)
    assert "'numpy' or 'onnx'" in problem["detail"]
    problem_of(gateway.client.get("/v1/models/news/versions/2/export"), 404)
