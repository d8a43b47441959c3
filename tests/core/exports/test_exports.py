"""Models that left the service: the archive, read with NumPy alone, and the ONNX graph score as the model does."""

import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.part_columns import EncoderId
from core.exports import onnx_graph, predict
from core.exports.archive import write_archive
from core.exports.onnx import NotExportable, write_onnx
from core.models.kernel import KernelModel
from core.models.model import LinearModel, Model
from core.validation.label_calibration import LabelCalibration
from tests.core.exports.exported import TEXTS, VECTORS, N, cases, linear, parts, vector_rows
from tests.there import there


def read(model: Model) -> predict.Classifier:
    file = io.BytesIO()
    write_archive(model, {"name": "news", "version": 3}, file)
    return predict.Classifier(zipfile.ZipFile(file).read)


def several(model: Model, classes: list[Any]) -> LinearModel:
    """A model of several labels beside a linear one of three classes."""
    assert isinstance(model, LinearModel)
    calibration = LabelCalibration(np.array([0.5, 1, 2]), np.array([-1.0, 0, 0.5]), np.array([0.3, 0.5, 0.4]))
    return replace(model, classes=classes, calibration=calibration)


def test_several_labels_leave_as_they_are() -> None:
    model = several(linear(9, ["x", "y", "z"], 2), ["grain", "ship", "wheat"])
    rows = vector_rows()
    scores = model.scores(rows)
    probabilities = there(model.probabilities(scores))
    labels, own_scores, likely = read(model).predict_all(VECTORS)
    assert labels == model.label_sets(probabilities)
    assert np.array_equal(own_scores, scores)
    np.testing.assert_allclose(likely, probabilities, rtol=1e-12)
    file = io.BytesIO()
    write_onnx(model, {"name": "news"}, file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    found = session.run(["labels", "probabilities"], {"X": VECTORS})
    assert np.array_equal(found[0], model.given_labels(probabilities).astype(np.int64))
    np.testing.assert_allclose(found[1], probabilities, rtol=1e-9, atol=1e-12)


LINEAR = (
    "words, two classes",
    "terms, four classes",
    "names",
    "numbers, scores alone",
    "counts",
    "divided counts",
    "lengths",
    "signs of hashing",
    "a dense matrix",
    "one class",
    "parts",
    "parts, some of which documents lack",
)


@pytest.mark.parametrize("name", [*LINEAR, "rbf", "rbf, sparse", "rbf, far from the origin", "poly", "poly, sparse"])
def test_the_archive_scores_as_the_model(name: str) -> None:
    model, rows, documents = cases()[name]
    columns, classifier = model.vocabulary.read(rows).rows, read(model)
    scores, found = model.scores(columns), classifier.decision_function(documents)
    close = 1e-6 if isinstance(model, KernelModel) else 1e-13
    np.testing.assert_allclose(found, scores, rtol=close, atol=close)
    probabilities = model.probabilities(scores)
    assert classifier.predict(documents) == [model.classes[place] for place in model.labels_of(scores, probabilities)]
    if probabilities is None:
        with pytest.raises(ValueError, match="not calibrated"):
            classifier.predict_proba(documents)
    else:
        np.testing.assert_allclose(classifier.predict_proba(documents), probabilities, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", LINEAR)
def test_the_graph_scores_as_the_model(name: str) -> None:
    model, rows, documents = cases()[name]
    file = io.BytesIO()
    write_onnx(model, {"name": "news", "version": 3, "kind": "text"}, file)
    session = onnxruntime.InferenceSession(file.getvalue())
    assert session.get_modelmeta().custom_metadata_map == {"name": "news", "version": "3", "kind": "text"}
    width = model.n_features
    given: NDArray[np.float32] = np.zeros((N, max(width, 50)), np.float32)
    dense = read(model).rows(documents)._replace(n_columns=given.shape[1]).dense()
    given[:, : dense.shape[1]] = dense
    found = dict(
        zip([each.name for each in session.get_outputs()], session.run(None, {"X": given[:, :width]}), strict=True)
    )
    scores = model.scores(model.vocabulary.read(rows).rows)
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-10, atol=1e-12)
    probabilities = model.probabilities(scores)
    assert list(found["label"]) == [model.classes[place] for place in model.labels_of(scores, probabilities)]
    assert ("probabilities" in found) == (probabilities is not None)
    if probabilities is not None:
        np.testing.assert_allclose(found["probabilities"], probabilities, rtol=1e-10, atol=1e-12)


def test_what_onnx_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotExportable, match="kernel model"):
        write_onnx(cases()["rbf"][0], {}, io.BytesIO())
    with pytest.raises(NotExportable, match="2147483648 columns"):
        write_onnx(replace(linear(5, ["a", "b"]), n_features=2**31), {}, io.BytesIO())
    monkeypatch.setattr(onnx_graph, "_MOST_BYTES", 100)
    with pytest.raises(NotExportable, match="2 GiB"):
        write_onnx(linear(50, ["a", "b"]), {}, io.BytesIO())


def test_the_archive_runs_by_itself(tmp_path: Path) -> None:
    """Without anything of this project on the path; the same version gives the same bytes."""
    model, _, _ = cases()["terms, four classes"]
    first, second = tmp_path / "news-3.zip", io.BytesIO()
    with first.open("wb") as file:
        write_archive(model, {"name": "news"}, file)
    write_archive(model, {"name": "news"}, second)
    assert first.read_bytes() == second.getvalue()
    (tmp_path / "in.ndjson").write_text(
        "".join(json.dumps({"id": str(k), "text": text}) + "\n" for k, text in enumerate(TEXTS[:20]))
    )
    command = [sys.executable, "-I", "-W", "error", str(first)]
    ran = subprocess.run(
        [*command, str(tmp_path / "in.ndjson")], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    found = [json.loads(line) for line in ran.stdout.strip().split("\n")]
    scores = model.scores(model.vocabulary.read(TextRows.of(TEXTS[:20])).rows)
    probabilities = there(model.probabilities(scores))
    labels = [model.classes[place] for place in probabilities.argmax(axis=1)]
    assert [(each["id"], each["text"], each["label"]) for each in found] == [
        (str(k), *each) for k, each in enumerate(zip(TEXTS, labels, strict=False))
    ]
    np.testing.assert_allclose([each["probability"] for each in found], probabilities.max(axis=1), rtol=1e-12)
    for name, content, id in (
        ("in.csv", 'id,text\n1,"goal, vote"\n', {"id": "1"}),
        ("in.txt", "goal, vote\r\n", {}),
        ("in.jsonl", '"goal, vote"\n', {}),
    ):
        (tmp_path / name).write_text(content)
        assert list(predict._documents_of(str(tmp_path / name))) == [{**id, "text": "goal, vote"}]
    for name, wrong, said in (
        ("body.csv", b"id,body\n1,goal\n", "body.csv: no column is named text; there are id, body"),
        ("latin.csv", b"text\ncaf\xe9\n", "latin.csv is not in UTF-8; save it in UTF-8"),
        ("cut.ndjson", b'\n{"text": "a"}\n{"text"\n', "cut.ndjson: line 3 is not JSON: Expecting ':' delimiter"),
        (
            "odd.ndjson",
            b'{"text": "a"}\n' * 1001 + b'{"txt": "b"}',
            "ndjson: document number 1002: unknown field 'txt'",
        ),
        ("none.txt", None, f"[Errno 2] No such file or directory: '{tmp_path / 'none.txt'}'"),
    ):
        if wrong is not None:
            (tmp_path / name).write_bytes(wrong)
        refused = subprocess.run([*command, str(tmp_path / name)], capture_output=True, text=True)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert said in refused.stderr
        assert refused.stderr.count(name) == 1
    for name in ("in.csv", "in.ndjson"):  # as in a pipe to `head`, which has seen enough
        reader, writer = os.pipe()
        os.close(reader)
        closed = subprocess.run([*command, str(tmp_path / name)], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert (closed.returncode, closed.stderr) == (0, b"")
    zipfile.ZipFile(first).extractall(tmp_path / "folder")
    assert (
        predict.load(tmp_path / "folder").predict(TEXTS[:20])
        == predict.load(first).predict(TEXTS[:20])
        == [each["label"] for each in found]
    )


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"txt": "a"}], "document number 1: unknown field 'txt'"),
        (
            ["", {"indices": [1]}],
            "document number 2 has indices; the model was trained on text, features, vector.price, vec",
        ),
        ([{"vectors": {"bge": [1.0]}}], "vector.bge has 1 numbers; the model takes 9"),
        ([{"text": "goal"}], "give the vector of its text by the encoder bge .* encoder null takes the text alone"),
    ],
)
def test_what_the_archive_refuses(documents: Any, message: str) -> None:
    columns, _, _ = parts()
    encoded = replace(columns, encoder=EncoderId("bge", "00ff"))
    classifier = read(replace(linear(int(columns.edges[-1]), ["a", "b"]), vocabulary=encoded))
    with pytest.raises(ValueError, match=message):
        classifier.predict(documents)


def test_what_the_archive_refuses_of_vectors() -> None:
    classifier = read(linear(5, ["a", "b"]))
    for documents in ([{"indices": [-1]}], [{"indices": [1], "values": [1e39]}], np.array([[np.nan]])):
        with pytest.raises(ValueError, match="finite numbers"):
            classifier.predict(documents)
    with pytest.raises(ValueError, match="document number 1 has text; the model takes indices"):
        classifier.predict(["a"])
