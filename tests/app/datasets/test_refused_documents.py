"""Documents that are refused, by uploads and predictions alike: the status, the field, and that nothing is kept."""

import gzip
import io
import json
import zipfile
import zlib
from typing import Any

import httpx
import numpy as np
import pytest

from app.predictions.service import decode_documents
from app.settings import GatewaySettings
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.codecs.encodings import arrays_of, as_json, as_ndjson, npz
from tests.app.conftest import NDJSON, TWO_CLASSES, Gateway, Start, problem_of, publish, serving
from tests.app.datasets.refused_kinds import Case, kind_cases
from tests.waiting import HANG, until

NUMBERED = [{"indices": [0, 2], "values": [1.0, 0.5], "label": 1}, {"indices": [1], "values": [2.0], "label": 2}]
ARRAYS = arrays_of(NUMBERED)


def json_faults() -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
    """A document and its fault, for both kinds of JSON."""
    return {
        "negative index": ({"indices": [3, -1]}, {"field": "indices", "detail": "must be at least 0"}),
        "index beyond 2^31": ({"indices": [2**31]}, {"field": "indices", "detail": "2147483647"}),
        "index beyond 2^64": ({"indices": [2**70]}, {"field": "indices", "detail": "must be at most 2147483647"}),
        "fractional index": ({"indices": [1.5]}, {"field": "indices", "detail": "must be an integer, not a fraction"}),
        "repeated index": ({"indices": [4, 2, 4]}, {"field": "indices", "detail": "4"}),
        "lengths differ": (
            {"indices": [1, 2], "values": [1]},
            {"field": "values", "detail": "has 1 numbers, but indices has 2"},
        ),
        "beyond float32": ({"indices": [1], "values": [1e39]}, {"field": "values", "detail": "finite"}),
        "text as value": (
            {"indices": [1], "values": ["2"]},
            {"field": "values", "detail": "must be a number, not a text"},
        ),
        "label of a wrong type": ({"indices": [1], "label": 1.5}, {"field": "label", "detail": "float"}),
        "label is a boolean": (
            {"indices": [1], "label": True},
            {"field": "label", "detail": "not true or false; a label is a text or an integer"},
        ),
        "label is a list": (
            {"indices": [1], "label": ["a"]},
            {"field": "label", "detail": "not an array; a document has one label here"},
        ),
        "empty label": (
            {"indices": [1], "label": ""},
            {"field": "label", "detail": "at least 1 character; an unlabeled document has none"},
        ),
        "id is a fraction": (
            {"indices": [1], "id": 5.5},
            {"field": "id", "detail": "not a fraction; an id is a text or an integer"},
        ),
        "unknown field": ({"indices": [1], "lable": "a"}, {"field": "lable", "detail": "unknown field"}),
        "no indices": ({"id": "x1", "values": [1]}, {"document": "x1", "field": "indices", "detail": "missing"}),
        "object inside": ({"indices": {"a": 1}}, {"field": "indices", "detail": "object"}),
    }


def raw_faults() -> dict[str, tuple[bytes, dict[str, str]]]:
    """The text of a document that is not JSON."""
    return {
        "NaN": (
            b'{"indices": [1], "values": [NaN]}',
            {"field": "values", "detail": "NaN is not a value of JSON; send null"},
        ),
        "NaN as a label": (
            b'{"indices": [1], "label": NaN}',
            {"field": "label", "detail": "NaN is not a value of JSON; send null, or leave"},
        ),
        "infinity": (b'{"indices": [1], "values": [Infinity]}', {"detail": "malformed"}),
        "too large a number": (b'{"indices": [1], "values": [1e999]}', {"field": "values", "detail": "out of range"}),
        "not UTF-8": (b'{"indices": [1], "label": "\xff"}', {"field": "label", "detail": "not UTF-8"}),
        "cut in a number": (b'{"indices": [1, -', {"detail": "malformed"}),
        "not an object": (b"5", {"detail": "must be an object, not an integer"}),
    }


def text_cases() -> dict[str, Case]:
    good = {"indices": [7], "id": "good"}
    cases = {}
    for name, (document, fault) in json_faults().items():
        expected = {"document": document["id"] if isinstance(document.get("id"), str) else "1"} | fault
        cases[f"json: {name}"] = Case("application/json", as_json([good, document]), expected)
        cases[f"ndjson: {name}"] = Case(NDJSON, as_ndjson([good, document]), expected)
    for name, (text, fault) in raw_faults().items():
        cases[f"json: {name}"] = Case(
            "application/json", b'{"documents": [{"indices": [7]}, ' + text + b"]}", {"document": "1"} | fault
        )
        cases[f"ndjson: {name}"] = Case(NDJSON, b'{"indices": [7]}\n' + text + b"\n", {"document": "1"} | fault)
    return cases


def shape_cases() -> dict[str, Case]:
    shape = {"document": "", "detail": "documents in JSON are {"}
    return {
        "json: another key": Case("application/json", b'{"docs": []}', shape),
        "json: a key more": Case("application/json", b'{"documents": [{"indices": [1]}], "x": 1}', shape),
        "json: an empty array": Case("application/json", b"[]", {"field": "documents", "detail": "there is none"}),
        "json: nothing": Case("application/json", b"", shape),
        "json: text after the end": Case(
            "application/json", b'{"documents": [{"indices": [1]}]} x', {"detail": "after the end"}
        ),
        "json: cut short": Case(
            "application/json", b'{"documents": [{"indices": [1]}', {"document": "1", "detail": "too early"}
        ),
        "json: cut in a document": Case(
            "application/json", b'{"documents": [{"indices": [1]}, {"ind', {"document": "1", "detail": "too early"}
        ),
        "json: no comma": Case(
            "application/json",
            b'{"documents": [{"indices": [1]} {"indices": [1]}]}',
            {"document": "1", "detail": "comma"},
        ),
        "json: no document": Case(
            "application/json", b'{"documents": []}', {"document": "", "detail": "there is none"}
        ),
        "ndjson: no document": Case(NDJSON, b"\n\n", {"detail": "there is none"}),
        "svmlight: no document": Case("text/x-svmlight", b"# nothing\n", {"detail": "there is none"}),
    }


def svmlight_cases() -> dict[str, Case]:
    faults = {
        "1 0:1": {"field": "indices", "detail": "from 1 to"},
        "1 -2:1": {"field": "indices", "detail": "from 1 to"},
        "1 2147483649:1": {"field": "indices", "detail": "from 1 to"},
        "1 1.5:1": {"field": "indices", "detail": "not an integer"},
        "1 3:nan": {"field": "values", "detail": "not a finite number"},
        "1 3:1e999": {"field": "values", "detail": "not a finite number"},
        "1 3:1_0": {"field": "values", "detail": "not a finite number"},
        "1 3:": {"field": "values", "detail": "not a finite number"},
        "1 3": {"field": "indices", "detail": "is not index:value"},
        "1 3:1 4:1 3:1": {"field": "indices", "detail": "2"},
        "sport 3:1": {"field": "label", "detail": "is not an integer (0: unlabeled); labels that are words need"},
        "1.5 3:1": {"field": "label", "detail": "not an integer"},
        "3:1 4:1": {"field": "label", "detail": "is not an integer"},
    }
    return {
        f"svmlight: {line}": Case("text/x-svmlight", f"1 1:1\n{line}\n".encode(), {"document": "1"} | fault)
        for line, fault in faults.items()
    }


def member(data: bytes, name: str = "data.npy") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def damaged_zip() -> bytes:
    body = bytearray(npz(ARRAYS))
    at = bytes(body).index(np.array([1.0, 0.5, 2.0]).tobytes())
    body[at + 3] ^= 1
    return bytes(body)


def npz_cases() -> dict[str, Case]:
    def changed(**arrays: Any) -> bytes:
        return npz({name: array for name, array in (ARRAYS | arrays).items() if array is not None})

    bodies = {
        "not a zip": (b"PK nothing", "", "not a zip"),
        "cut short": (npz(ARRAYS)[:-30], "", "not a zip"),
        "damaged": (damaged_zip(), "", "CRC"),
        "object array": (changed(labels=np.array(["a", None], object), labeled=None), "labels", "never unpickled"),
        "object data": (changed(data=np.array([1, 2, 3], object)), "data", "never unpickled"),
        "missing array": (changed(indices=None), "indices", "missing"),
        "unknown array": (changed(lengths=np.ones(2)), "lengths", "unexpected member"),
        "no .npy": (member(b"x", "evil.pkl"), "evil.pkl", "unexpected member"),
        "not an array": (npz_with("data", b"no array"), "data", "not a .npy array"),
        "two dimensions": (changed(data=np.ones((3, 1))), "data", "one dimension"),
        "complex values": (changed(data=np.ones(3, complex)), "data", "complex"),
        "float indices": (changed(indices=np.ones(3)), "indices", "float64"),
        "negative index": (changed(indices=np.array([0, -2, 1])), "indices", "from 0 to 2"),
        "index beyond the shape": (changed(indices=np.array([0, 3, 1])), "indices", "from 0 to 2"),
        "repeated index": (changed(indices=np.array([2, 2, 1])), "indices", "2"),
        "nan": (changed(data=np.array([1, np.nan, 1])), "values", "finite"),
        "too large for float32": (changed(data=np.array([1, 1e39, 1])), "values", "finite"),
        "lengths differ": (changed(data=np.ones(2)), "indices", "length 3, not 2"),
        "indptr too short": (changed(indptr=np.array([0, 3])), "indptr", "length 2, not 3"),
        "indptr decreases": (changed(indptr=np.array([0, 4, 3])), "indptr", "must not decrease"),
        "indptr starts late": (changed(indptr=np.array([1, 2, 3])), "indptr", "start with 0"),
        "indptr ends early": (changed(indptr=np.array([0, 1, 2])), "indptr", "ends with 2"),
        "indptr ends late": (changed(indptr=np.array([0, 1, 5])), "indices", "fewer"),
        "shape of three": (changed(shape=np.array([2, 3, 1])), "shape", "two numbers"),
        "features beyond 2^31": (changed(shape=np.array([2, 2**31 + 1])), "shape", "at most"),
        "another format": (changed(format=np.array(b"bsr")), "format", "by rows"),
        "labels without labeled": (changed(labeled=None), "labeled", "integer labels"),
        "labels of bytes": (changed(labels=np.array([b"a", b"b"]), labeled=None), "labels", "send labels.astype(str)"),
        "labeled without labels": (changed(labels=None), "labeled", "integer labels"),
        "boolean labels": (changed(labels=np.array([True, False])), "labels", "bool"),
        "labels with fractions": (
            npz({"X": np.eye(2), "labels": np.array([1.0, 2.5])}),
            "labels",
            "2.5 is not an integer",
        ),
        "flags beside floats": (changed(labels=np.array([1.0, np.nan])), "labeled", "among floats NaN"),
        "too few labels": (changed(labels=np.array([1])), "labels", "length 1, not 2"),
        "long ids": (changed(ids=np.array(["x" * 300, "y"])), "ids", "longer than 256"),
        "surrogates": (changed(ids=np.array(["\ud800", "y"])), "ids", "not Unicode"),
    }
    cases = {
        f"npz: {name}": Case("application/x-npz", body, {"field": field, "detail": detail})
        for name, (body, field, detail) in bodies.items()
    }
    cases["npz: repeated ids"] = Case(
        "application/x-npz", changed(ids=np.array(["x", "x"])), {"document": "x", "field": "id"}
    )
    return cases


def dense_cases() -> dict[str, Case]:
    dense: dict[str, tuple[dict[str, Any], str, str]] = {
        "one dimension": ({"X": np.ones(3)}, "X", "two dimensions, documents and features, not 1"),
        "three dimensions": ({"X": np.ones((2, 2, 2))}, "X", "two dimensions, documents and features, not 3"),
        "beside a shape": ({"X": np.eye(2), "shape": np.array([2, 2])}, "indptr", "is missing"),
        "beside text and CSR": (
            ARRAYS | {"text": np.array(["a", "b"])},
            "text",
            "is given beside indptr, indices, data, shape",
        ),
        "labels of another length": ({"X": np.eye(3), "labels": np.array(["a", "b"])}, "labels", "length 2, not 3"),
        "ids of another length": ({"X": np.eye(3), "ids": np.array(["a", "b"])}, "ids", "length 2, not 3"),
        "complex": ({"X": np.eye(2, dtype=complex)}, "X", "complex"),
        "object": ({"X": np.eye(2).astype(object)}, "X", "never unpickled"),
        "no document": ({"X": np.ones((0, 5))}, "documents", "there is none"),
    }
    cases = {
        f"npz: dense, {name}": Case("application/x-npz", npz(arrays), {"field": field, "detail": detail})
        for name, (arrays, field, detail) in dense.items()
    }
    for name, value, ordered in (
        ("nan", np.nan, np.ascontiguousarray),
        ("nan in Fortran order", np.nan, np.asfortranarray),
        ("infinity", np.inf, np.ascontiguousarray),
        ("beyond float32", -1e39, np.ascontiguousarray),
    ):
        matrix = np.eye(4)
        matrix[2, 1] = value
        fault = {"document": "2", "field": "values", "detail": "the value of index 1 is not a finite number"}
        cases[f"npz: dense, {name}"] = Case("application/x-npz", npz({"X": ordered(matrix)}), fault)
    cases["npz: dense, nan under an id"] = Case(
        "application/x-npz", npz({"X": np.array([[np.nan]]), "ids": np.array(["x"])}), {"document": "x"}
    )
    return cases


def npz_with(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO(npz({key: array for key, array in ARRAYS.items() if key != name}))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def gzip_cases() -> dict[str, Case]:
    whole = gzip.compress(as_ndjson(NUMBERED * 1000))
    bodies = {
        "truncated": (whole[:-20], "too early"),
        "without its checksum": (whole[:-4], "too early"),
        "wrong checksum": (whole[:-8] + bytes(8), "damaged"),
        "garbage after it": (whole + b"garbage", "damaged"),
        "not gzip": (as_ndjson(NUMBERED), "not gzip"),
        "zlib": (zlib.compress(as_ndjson(NUMBERED)), "not gzip"),
        "empty": (b"", "empty"),
    }
    return {f"gzip: {name}": Case(NDJSON, body, {"detail": detail}, "gzip") for name, (body, detail) in bodies.items()}


CASES = text_cases() | kind_cases() | shape_cases() | svmlight_cases() | npz_cases() | dense_cases() | gzip_cases()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, shared_valkey: Any) -> Any:
    """One gateway with one model for all cases: a refusal changes nothing, which every case checks."""
    root = tmp_path_factory.mktemp("refused") / "store"
    settings = GatewaySettings(store_url=f"file://{root}", redis_url=shared_valkey.url, queue="refused")
    with (
        serving(settings) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG, verify=False) as client,
    ):
        gateway = Gateway(client, root, port)
        publish(gateway.store)
        yield gateway


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_refused_by_upload_and_by_prediction(shared: Gateway, case: Case) -> None:
    before = [path for path in shared.kept() if not path.startswith(".staging")]  # another body may still be removed
    headers = {"content-type": case.media_type, "content-encoding": case.encoding}
    for path in ("/v1/datasets", "/v1/models/news/predict"):
        if path.endswith("predict") and case.fault.get("field") == "id" and case.fault.get("document") == "x":
            continue  # a prediction does not mind ids used twice
        problem = problem_of(shared.client.post(path, content=case.body, headers=headers), 422)
        assert problem["type"] == "/problems/invalid-documents"
        first = problem["errors"][0]
        for key, value in case.fault.items():
            assert value in first[key] if key == "detail" else first[key] == value, first
        until(lambda: shared.kept() == before)


@pytest.mark.filterwarnings("ignore")  # NumPy warns of headers that only an old Python can have written
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("arrays", [ARRAYS, {"X": np.eye(3, order="F")}], ids=["sparse", "dense"])
def test_a_damaged_npz_is_read_or_refused_by_name(arrays: dict[str, Any], compressed: bool) -> None:
    whole, bounds = npz(arrays, compressed=compressed), GatewaySettings().request_bounds
    refusals = 0
    for place in range(len(whole)):
        for bits in (1, 0xFF):
            body = whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :]
            try:
                list(decode_documents([body], {"content-type": "application/x-npz"}, bounds))
            except (InvalidDocuments, LimitExceeded):
                refusals += 1
    assert len(whole) < refusals < 2 * len(whole)


def test_malformed_line_5000_is_named(gateway: Gateway) -> None:
    lines = (
        as_ndjson([{"indices": [1, 5, 900], "label": "a"}] * 4999)
        + b'{"indices": [1,}\n'
        + as_ndjson(TWO_CLASSES * 500)
    )
    problem = problem_of(gateway.client.post("/v1/datasets", content=lines, headers={"content-type": NDJSON}), 422)
    assert problem["errors"][0]["document"] == "4999"
    assert problem["errors"][0]["detail"].startswith("line 5000: JSON is malformed")
    assert gateway.kept() == []


def test_at_most_twenty_faults_each_named(gateway: Gateway) -> None:
    documents = [{"id": f"d{number}", "indices": [-1]} for number in range(50)]
    for media_type, body in ((NDJSON, as_ndjson(documents)), ("application/json", as_json(documents))):
        problem = problem_of(
            gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}), 422
        )
        assert [error["document"] for error in problem["errors"]] == [f"d{number}" for number in range(20)]


@pytest.mark.parametrize(
    "labels",
    [["a", 1], [1, "a"]],
)
def test_labels_of_two_types(gateway: Gateway, labels: list[Any]) -> None:
    documents = [{"indices": [1], "label": label} for label in labels]
    problem = problem_of(gateway.client.post("/v1/datasets", json={"documents": documents}), 422)
    assert (problem["errors"][0]["document"], problem["errors"][0]["field"]) == ("1", "label")
    assert problem["detail"] == "document number 2: label: labels must be all strings or all integers"
    assert gateway.kept() == []


def test_ids_used_twice(gateway: Gateway) -> None:
    documents = [{"indices": [1], "id": "x"}, {"indices": [2], "id": "y"}, {"indices": [3], "id": "x"}]
    problem = problem_of(gateway.client.post("/v1/datasets", json={"documents": documents}), 422)
    assert (problem["errors"][0]["document"], problem["errors"][0]["field"]) == ("x", "id")
    assert gateway.kept() == []


LONG = b'{"indices": [' + b"1, " * 5000
BIG = as_ndjson([{"indices": list(range(300))}]) * 3000
LIMITS = {
    "body": ({"max_upload_bytes": 1000}, NDJSON, BIG, "identity", "1000 bytes in the body"),
    "documents": ({"max_documents": 2}, NDJSON, as_ndjson(TWO_CLASSES), "identity", "2 documents"),
    "documents in npz": ({"max_documents": 1}, "application/x-npz", npz(ARRAYS), "identity", "1 documents"),
    "features": ({"max_features": 2}, NDJSON, as_ndjson(TWO_CLASSES), "identity", "2 features"),
    "nonzeros": ({"max_nonzeros": 3}, NDJSON, as_ndjson(TWO_CLASSES), "identity", "3 nonzeros"),
    "documents in a dense npz": (
        {"max_documents": 1},
        "application/x-npz",
        npz({"X": np.eye(2)}),
        "identity",
        "1 documents",
    ),
    "nonzeros in a dense npz": (
        {"max_nonzeros": 2},
        "application/x-npz",
        npz({"X": np.eye(3)}),
        "identity",
        "2 nonzeros",
    ),
    "a wide dense npz": (
        {"max_document_bytes": 800},
        "application/x-npz",
        npz({"X": np.ones((1, 101))}),
        "identity",
        "100 numbers in a dense",
    ),
    "nonzeros in npz": ({"max_nonzeros": 2}, "application/x-npz", npz(ARRAYS), "identity", "2 nonzeros"),
    "classes": (
        {"max_classes": 2},
        NDJSON,
        as_ndjson([{"indices": [1], "label": n} for n in range(3)]),
        "identity",
        "2 classes",
    ),
    "line": (
        {"max_document_bytes": 5000},
        NDJSON,
        LONG,
        "identity",
        "bytes in the document in line 1; send it in parts",
    ),
    "line with an id": (
        {"max_document_bytes": 5000},
        NDJSON,
        b'{"id": "d7", ' + LONG[1:],
        "identity",
        "bytes in document d7, in line 1",
    ),
    "document": (
        {"max_document_bytes": 5000},
        "application/json",
        b'{"documents": [' + LONG,
        "identity",
        "bytes in the document number 1; send it in parts",
    ),
    "gzip bomb": (
        {"max_decompressed_bytes": 10**6},
        NDJSON,
        gzip.compress(b" " * 50_000_000),
        "gzip",
        "bytes in the decompressed body",
    ),
    "zip bomb": (
        {"max_decompressed_bytes": 10**6},
        "application/x-npz",
        npz(ARRAYS | {"data": np.zeros(5_000_000), "indices": np.zeros(5_000_000, np.int32)}, compressed=True),
        "identity",
        "bytes in the decompressed body",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("chunked", [False, True])
def test_too_much(start: Start, name: str, chunked: bool) -> None:
    changes, media_type, body, encoding, detail = LIMITS[name]
    gateway = start(**changes)
    headers = {"content-type": media_type, "content-encoding": encoding}
    content = iter([body]) if chunked else body
    problem = problem_of(gateway.client.post("/v1/datasets", content=content, headers=headers), 413)
    assert problem["type"] == "/problems/limit-exceeded"
    assert detail in problem["detail"]
    assert gateway.kept() == []


def test_a_prediction_may_be_too_large(start: Start) -> None:
    gateway = start(max_request_bytes=1000)
    publish(gateway.store)
    for body, encoding in ((BIG, "identity"), (gzip.compress(b" " * 100_000), "gzip")):
        headers = {"content-type": NDJSON, "content-encoding": encoding}
        problem_of(gateway.client.post("/v1/models/news/predict", content=body, headers=headers), 413)
    problem_of(gateway.client.post("/v1/jobs", content=b" " * 2000, headers={"content-type": "application/json"}), 413)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/datasets", {"content-type": "text/plain"}),
        ("/v1/datasets", {"content-type": "text/csv; charset=bz2"}),
        ("/v1/datasets", {}),
        ("/v1/datasets", {"content-type": NDJSON, "content-encoding": "br"}),
        ("/v1/datasets", {"content-type": NDJSON, "content-encoding": "gzip, gzip"}),
        ("/v1/models/news/predict", {"content-type": "text/plain"}),
        ("/v1/jobs", {"content-type": NDJSON}),
        ("/v1/jobs", {"content-type": "application/json", "content-encoding": "zstd"}),
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_types_that_are_not_read(gateway: Gateway, path: str, headers: dict[str, str]) -> None:
    problem = problem_of(gateway.client.post(path, content=json.dumps({}), headers=headers), 415)
    assert problem["type"] == "/problems/unsupported-media-type"


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\nb", "a\x7f", "x" * 129])
def test_dataset_names(gateway: Gateway, name: str) -> None:
    answer = gateway.client.post("/v1/datasets", json={"documents": TWO_CLASSES}, params={"name": name})
    assert problem_of(answer, 422)["type"] == "/problems/invalid-name"
    assert gateway.kept() == []
