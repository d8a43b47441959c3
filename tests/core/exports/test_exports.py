"""Models that left the service: the archive, read with NumPy alone, and the ONNX graph score as the model does."""

import io
import itertools
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from core.documents.kinds import NamedRows, PartRows, Rows, RowsOfKind, TextRows
from core.documents.part_columns import Block, EncoderId, PartColumns, centre_of, unit_of
from core.documents.rows import SparseRows
from core.documents.term_weights import TermWeights
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS, Names
from core.exports import onnx_graph, predict
from core.exports.archive import write_archive
from core.exports.onnx import NotExportable, write_onnx
from core.kernels.function import Kernel
from core.models.kernel import KernelModel
from core.models.model import LinearModel, Model
from core.models.parted import PartedModel
from core.options.text import TextOptions
from core.validation.calibration import Calibration
from core.validation.label_calibration import LabelCalibration
from tests.core.problems import dense_of, random_rows
from tests.there import there

N = 1000
WORDS = ["goal", "vote", "späte", "ΟΔΟΣ", "ελιά", "x1", "İstanbul", "a", "the", "Wahl_2", "12", "未来"]
RNG = np.random.default_rng(3)
TEXTS = [" ".join(RNG.choice(WORDS, int(RNG.integers(0, 40)))) + ("." if k % 3 else "\u2028") for k in range(N - 1)] + [
    "goal " * 400
]
NAMED = [
    {
        str(name): float(value)
        for name, value in zip(RNG.choice(40, 4, replace=False), RNG.standard_normal(4), strict=True)
    }
    for _ in range(N)
]
VECTORS = RNG.standard_normal((N, 9)).astype(np.float32)


def read(model: Model) -> predict.Classifier:
    file = io.BytesIO()
    write_archive(model, {"name": "news", "version": 3}, file)
    return predict.Classifier(zipfile.ZipFile(file).read)


def linear(
    n_features: int, classes: list[Any], seed: int = 0, calibrated: bool = True, seen: float = 0.9
) -> LinearModel:
    rng, n_columns = np.random.default_rng(seed), 1 if len(classes) == 2 else len(classes)
    features = np.flatnonzero(rng.random(n_features) < seen).astype(np.uint32)
    calibration = Calibration(
        rng.uniform(0.5, 3, n_columns), rng.standard_normal(n_columns), rng.uniform(0.5, 2, len(classes))
    )
    weights = rng.standard_normal((len(features), n_columns))
    return LinearModel(
        classes,
        n_features,
        features,
        weights,
        rng.standard_normal(n_columns),
        calibration=calibration if calibrated else None,
    )


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


def named_rows() -> NamedRows:
    names = [str(k) for k in range(40)]
    dense = np.zeros((N, 40), np.float32)
    for row, each in enumerate(NAMED):
        for name, value in each.items():
            dense[row, int(name)] = value
    indptr = np.arange(0, 4 * N + 1, 4, dtype=np.int64)
    return NamedRows(SparseRows(indptr, np.nonzero(dense)[1].astype(np.uint32), dense[dense != 0], 40), names)


def vector_rows() -> SparseRows:
    return SparseRows(
        np.arange(N + 1, dtype=np.int64) * 9, np.tile(np.arange(9, dtype=np.uint32), N), VECTORS.ravel(), 9
    )


def parts() -> tuple[PartColumns, Rows, list[dict[str, Any]]]:
    terms = fit_terms(TextRows.of(TEXTS[: N // 2]), TextOptions(min_documents=1), lambda *_: None)
    names = Names([str(k) for k in range(30)])
    prices = SparseRows(np.arange(N + 1, dtype=np.int64), np.zeros(N, np.uint32), VECTORS[:, 0], 1)
    columns = PartColumns(
        [
            Block("text", terms, len(terms.keys)),
            Block("features", names, 30),
            Block("vector.price", NUMBERS, 1, unit=unit_of(prices)),
            Block("vector.bge", NUMBERS, 9, centre_of(vector_rows())),
        ]
    )
    given: dict[str, RowsOfKind] = {
        "text": TextRows.of(TEXTS),
        "features": named_rows(),
        "vector.bge": vector_rows(),
        "vector.price": prices,
    }
    documents = [
        {"text": text, "features": named, "vectors": {"bge": vector, "price": vector[:1]}}
        for text, named, vector in zip(TEXTS, NAMED, VECTORS.tolist(), strict=True)
    ]
    return columns, PartRows(given), documents


def incomplete() -> tuple[Model, Rows, list[dict[str, Any]]]:
    """A model with another one for documents without a vector, as every third is here."""
    columns, rows, documents = parts()
    assert isinstance(rows, PartRows)
    made = columns.ranges["vector.bge"]
    whole, other = (linear(size, ["a", "b", "c"], seed) for seed, size in enumerate((made.stop, made.start)))
    model = PartedModel.of(whole, other, np.array([[made.start, made.stop]]))
    lengths = np.where(np.arange(N) % 3 == 0, 0, 9)
    vectors = vector_rows().keeping(np.repeat(lengths > 0, 9))
    for document in documents[::3]:
        del document["vectors"]["bge"]
    return replace(model, vocabulary=columns), PartRows({**rows.parts, "vector.bge": vectors}), documents


def weighing(model: LinearModel, *, counts: bool, signed: bool = False, divided: bool = False) -> LinearModel:
    """The model with weights of terms."""
    idf = np.random.default_rng(9).uniform(1, 5, len(model.features)) if counts else np.ones(len(model.features))
    idf[: 2 * counts] *= -1.0  # numbers beside counts
    return replace(model, terms=TermWeights(idf, counts, signed, divided))


def _as_counts(
    rows: SparseRows, pairs: list[dict[str, Any]], unit: float = 1.0
) -> tuple[SparseRows, list[dict[str, Any]]]:
    """The same documents with counts of ``unit``, few of them large; the first has no whole ones, as documents may
    later on.
    """
    values = np.ceil(np.abs(rows.values) * 3).astype(np.float32)
    values[::50] *= 400
    values[: rows.indptr[1]] = rows.values[: rows.indptr[1]]
    values *= np.float32(unit)
    spans = itertools.pairwise(rows.indptr.tolist())
    return rows._replace(values=values), [
        {**each, "values": values[start:stop].tolist()} for each, (start, stop) in zip(pairs, spans, strict=True)
    ]


@cache
def cases() -> dict[str, tuple[Model, Rows, Any]]:
    """Models, documents as rows, and the same documents as people have them."""
    terms = {
        ngrams: fit_terms(TextRows.of(TEXTS[: N // 2]), TextOptions(min_documents=1, ngrams=ngrams), lambda *_: None)
        for ngrams in (1, 2)
    }
    sparse = random_rows(np.random.default_rng(1), N, 50)
    spans = itertools.pairwise(sparse.indptr.tolist())
    pairs = [{"indices": sparse.indices[a:b].tolist(), "values": sparse.values[a:b].tolist()} for a, b in spans]
    counted, of_counts = _as_counts(sparse, pairs)
    columns, part_rows, documents = parts()
    found: dict[str, tuple[Model, Rows, Any]] = {
        "words, two classes": (
            replace(linear(len(terms[1].keys), ["a", "b"]), vocabulary=terms[1]),
            TextRows.of(TEXTS),
            TEXTS,
        ),
        "terms, four classes": (
            replace(linear(len(terms[2].keys), ["ä", "b", "c", "d"]), vocabulary=terms[2]),
            TextRows.of(TEXTS),
            TEXTS,
        ),
        "names": (
            replace(linear(30, [1, 2, 3]), vocabulary=Names([str(k) for k in range(30)])),
            named_rows(),
            [{"features": each} for each in NAMED],
        ),
        "numbers, scores alone": (linear(45, ["a", "b"], calibrated=False), sparse, pairs),
        "counts": (weighing(linear(50, ["a", "b"]), counts=True), counted, of_counts),
        "lengths": (weighing(linear(50, ["a", "b", "c"]), counts=False), sparse, pairs),
        "divided counts": (weighing(linear(50, [1, 2]), counts=True, divided=True), *_as_counts(sparse, pairs, -1 / 7)),
        "signs of hashing": (weighing(linear(50, ["a", "b"]), counts=True, signed=True), sparse, pairs),
        "a dense matrix": (linear(50, ["a", "b", "c"], calibrated=False), sparse, dense_of(sparse)),
        "one class": (replace(linear(50, ["a"]), calibration=None), sparse, pairs),
        "parts": (replace(linear(int(columns.edges[-1]), ["a", "b", "c"]), vocabulary=columns), part_rows, documents),
        "parts, some of which documents lack": incomplete(),
    }
    support, vectors = random_rows(np.random.default_rng(5), 60, 40), vector_rows()
    features = np.arange(2, 42, dtype=np.uint32)
    for kernel in (Kernel("rbf", 0.3), Kernel("poly", 0.5, 3, 1.0)):
        weights = np.random.default_rng(6).standard_normal((60, 3)) * 1e4  # large ones magnify what kernel values lack
        found[kernel.name] = (
            KernelModel(["a", "b", "c"], 50, features, support, weights, np.arange(3.0), kernel),
            sparse,
            pairs,
        )
        wide = support._replace(n_features=400)
        more = KernelModel(
            ["a", "b", "c"], 402, np.arange(2, 402, dtype=np.uint32), wide, weights, np.arange(3.0), kernel
        )
        found[f"{kernel.name}, sparse"] = (more, sparse, pairs)
    far = vectors._replace(values=vectors.values + np.float32(1e4))
    near = KernelModel(
        ["a", "b"], 9, features[:9] - 2, far.between(0, 60), weights[:, :1], np.zeros(1), Kernel("rbf", 0.3)
    )
    found["rbf, far from the origin"] = (near, far, dense_of(far))
    return found


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
