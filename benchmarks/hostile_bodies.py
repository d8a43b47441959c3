"""Bodies that are made to hurt: at least 200, each for one call.

Each is as large as a request may be, by repetition; most are short as sent.
"""

import gzip
import io
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_JSON, _NDJSON, _SVMLIGHT, _NPZ, _NPY, _CSV = (
    *("application/json", "application/x-ndjson", "text/x-svmlight", "application/x-npz", "application/x-npy"),
    "text/csv",
)
_PREDICT, _INFER, _EXPLAIN, _EVALUATE, _SUGGEST = (
    *("/v1/models/news/predict", "/v2/models/news/infer", "/v1/models/news/explain"),
    *("/v1/models/news/evaluate", "/v1/models/news/suggest"),
)
_UNITS: dict[str, bytes] = {
    "lists": b"[],",
    "objects": b"{},",
    "objects in objects": b'{"a":{"a":[]}},',
    "numbers": b"0,",
    "long numbers": b"1" * 300 + b",",
    "exponents": b"1e-307,",
    "strings": b'"",',
    "escapes": b'"\\\\\\"",',
    "surrogates": b'"\\ud83d\\ude00",',
    "brackets in strings": b'"],[{",',
    "space": b" \t\r\n0,",
    "nulls": b"null,",
}
"""What fills an array, by name; each ends with its comma."""


class Hostile(NamedTuple):
    """A request that may hurt."""

    name: str
    path: str
    media_type: str
    body: bytes
    method: str = "POST"
    encoding: str = "identity"


def hostile_bodies(size: int, dataset: str) -> Iterator[Hostile]:
    """All of them, of ``size`` bytes once decompressed; ``dataset`` is the id of one with a document or more."""
    yield from _free_form(size, dataset)
    yield from _documents(size)
    yield from _labels(size, dataset)
    yield from _tensors(size)
    yield from _lines(size)
    yield from _matrices(size)
    yield from _compressed(size, dataset)


def _filled(before: bytes, unit: bytes, after: bytes, size: int) -> bytes:
    """A text of about ``size`` bytes that repeats a unit."""
    return before + unit * max(1, (size - len(before) - len(after)) // len(unit)) + after


def _members(size: int, unit: str = '"%d":0,') -> bytes:
    return "".join(unit % number for number in range(size // (len(unit) + 5))).encode()


def _free_form(size: int, dataset: str) -> Iterator[Hostile]:
    """Fields of any shape, and fields where none is expected."""
    jobs = b'{"model":"m","dataset":"' + dataset.encode() + b'",'
    places = {
        "options": ("/v1/jobs", jobs + b'"options":{"a":[', b"0]}}"),
        "text": ("/v1/jobs", jobs + b'"text":{"a":[', b"0]}}"),
        "parameters": (_INFER, b'{"inputs":[],"parameters":{"a":[', b"0]}}"),
        "an unknown field": (_INFER, b'{"inputs":[],"a":[', b"0]}"),
        "outputs": (_INFER, b'{"inputs":[],"outputs":[', b'{"name":"a"}]}'),
        "a field of a suggestion": (_SUGGEST, b'{"dataset":[', b"0]}"),
    }
    for place, (path, before, after) in places.items():
        for name, unit in _UNITS.items():
            yield Hostile(f"{place}: {name}", path, _JSON, _filled(before, unit, after, size))
    for path in ("/v1/jobs", _INFER, _SUGGEST, _EXPLAIN):
        yield Hostile(f"{path}: deep", path, _JSON, b'{"a":' * (size // 10) + b"0" + b"}" * (size // 10))
        yield Hostile(f"{path}: many fields", path, _JSON, b"{" + _members(size) + b'"a":0}')
        yield Hostile(f"{path}: one field, again and again", path, _JSON, _filled(b"{", b'"a":0,', b'"a":0}', size))
        yield Hostile(f"{path}: space", path, _JSON, b" " * size)
        yield Hostile(f"{path}: no end", path, _JSON, _filled(b'{"a":[', b"[", b"", size))
        yield Hostile(f"{path}: a name without end", path, _JSON, b'{"' + b"a" * size)
    yield Hostile("a name of a model", "/v1/jobs", _JSON, b'{"model":"' + b"\xf0\x9f\x98\x80" * (size // 4) + b'"}')


def _documents(size: int) -> Iterator[Hostile]:
    """Documents as JSON, in every call that takes them."""
    forms = {
        "empty": b'{"indices":[]},',
        "one value": b'{"indices":[0]},',
        "unsorted": b'{"indices":[9,8,7,6,5,4,3,2,1]},',
        "no kind": b"{},",
        "features": b'{"features":{"a":1,"b":2}},',
        "texts": b'{"text":""},',
        "brackets in texts": b'{"text":"}]},{"},',
        "escapes": b'{"text":"\\\\\\\\\\""},',
        "ids": b'{"id":"x","indices":[0]},',
        "numbers": b"0,",
        "labels": b'{"indices":[0],"labels":["a","b"],"not":["c"]},',
        "votes": b'{"indices":[0],"votes":{"a":"b","c":{"d":0.5}},"weight":0},',
        "objects in documents": b'{"indices":[0],"features":{"a":{}}},',
    }
    ballots = b'{"indices":[0],"votes":{' + _members(min(size, 1_900_000), '"v%d":"c",') + b'"v":"c"}},'
    wide = b'{"indices":[' + b",".join(b"%d" % number for number in range(size // 10)) + b"]},"
    named = b'{"features":{' + _members(min(size, 1_900_000), '"n%d":1,') + b'"a":1}},'
    for path in ("/v1/datasets", "/v1/jobs", _PREDICT, _EVALUATE, _EXPLAIN):
        before = b'{"model":"m","documents":[' if path == "/v1/jobs" else b'{"documents":['
        for name, unit in forms.items():
            yield Hostile(f"{path}: documents, {name}", path, _JSON, _filled(before, unit, unit[:-1] + b"]}", size))
        for name, unit in (("wide", wide), ("many names", named), ("many voters", ballots)):
            yield Hostile(f"{path}: documents, {name}", path, _JSON, before + unit[:-1] + b"]}")


def _labels(size: int, dataset: str) -> Iterator[Hostile]:
    path = f"/v1/datasets/{dataset}/labels"
    values = {
        "unknown ids": '"x%d":"a",',
        "classes": '"%d":"c",',
        "lists": '"%d":[],',
        "lists of labels": '"%d":["a","b"],',
        "objects": '"%d":{"a":{}},',
        "nulls": '"%d":null,',
    }
    for name, unit in values.items():
        yield Hostile(f"labels: {name}", path, _JSON, b'{"labels":{' + _members(size, unit) + b'"0":"a"}}', "PUT")
        yield Hostile(
            f"drawn: {name}", path, _JSON, b'{"labels":{},"drawn":{' + _members(size, unit) + b'"0":"random"}}', "PUT"
        )
    yield Hostile(
        "labels: one id, again and again", path, _JSON, _filled(b'{"labels":{', b'"0":"a",', b'"0":"b"}}', size), "PUT"
    )
    yield Hostile("labels: a list", path, _JSON, _filled(b'{"labels":[', b"0,", b"0]}", size), "PUT")
    yield Hostile("labels: one long id", path, _JSON, b'{"labels":{"' + b"x" * size + b'":"a"}}', "PUT")


def _tensors(size: int) -> Iterator[Hostile]:
    def tensor(data: bytes, shape: bytes, name: bytes = b"X", datatype: bytes = b"FP32") -> bytes:
        return (
            b'{"name":"' + name + b'","shape":[' + shape + b'],"datatype":"' + datatype + b'","data":[' + data + b"]}"
        )

    for name, unit in _UNITS.items():
        data = _filled(b"", unit, b"0", size)
        yield Hostile(f"a matrix: {name}", _INFER, _JSON, b'{"inputs":[' + tensor(data, b"1,1") + b"]}")
        yield Hostile(f"texts: {name}", _INFER, _JSON, b'{"inputs":[' + tensor(data, b"1", b"text", b"BYTES") + b"]}")
    for count, width in ((size // 2, 1), (size // 20, 10), (10, size // 20)):
        flat = b",".join([b"0"] * (count * width))
        rows = b",".join([b"[" + b",".join([b"1"] * width) + b"]"] * count)
        shape = b"%d,%d" % (count, width)
        yield Hostile(f"a matrix of {count} rows", _INFER, _JSON, b'{"inputs":[' + tensor(flat, shape) + b"]}")
        yield Hostile(f"a matrix of {count} nested rows", _INFER, _JSON, b'{"inputs":[' + tensor(rows, shape) + b"]}")
    yield Hostile(
        "many tensors",
        _INFER,
        _JSON,
        _filled(b'{"inputs":[', tensor(b"", b"1") + b",", tensor(b"", b"1") + b"]}", size),
    )
    yield Hostile("a long shape", _INFER, _JSON, b'{"inputs":[' + tensor(b"1", _filled(b"", b"1,", b"1", size)) + b"]}")


def _lines(size: int) -> Iterator[Hostile]:
    forms = {
        ("empty lines", _NDJSON): b"\n",
        ("one value", _NDJSON): b'{"indices":[0]}\n',
        ("no JSON", _NDJSON): b"{\n",
        ("a line without end", _NDJSON): b"[",
        ("labels alone", _SVMLIGHT): b"1\n",
        ("comments", _SVMLIGHT): b"#\n",
        ("groups", _SVMLIGHT): b"1 qid:1 1:1\n",
        ("no numbers", _SVMLIGHT): b"x y:z\n",
        ("long numbers", _SVMLIGHT): b"1 1:" + b"9" * 400 + b"\n",
        ("quotes", _CSV): b'""""""\n',
        ("columns", _CSV): b",",
        ("rows", _CSV): b"a\n",
        ("voters", _CSV): b"vote:a,",
    }
    for path in ("/v1/datasets", _PREDICT):
        for (name, media_type), unit in forms.items():
            head = b"text\n" if media_type == _CSV and name not in ("columns", "voters") else b""
            yield Hostile(f"{path}: {media_type}, {name}", path, media_type, _filled(head, unit, b"", size))


def _matrices(size: int) -> Iterator[Hostile]:
    """Zip files of zeros: a thousandth of their size as sent."""
    for rows, columns in ((4, size // 32), (size // 32, 4), (int(size**0.5) // 3, int(size**0.5) // 3)):
        for order in "CF":
            zeros = np.zeros((max(2, rows), max(2, columns)))
            matrix = zeros if order == "C" else np.asfortranarray(zeros)
            for path in ("/v1/datasets", _PREDICT, _EVALUATE):
                yield Hostile(f"{path}: npz, {rows} × {columns} in order {order}", path, _NPZ, _zipped(X=matrix))
            yield Hostile(f"npy, {rows} × {columns} in order {order}", _PREDICT, _NPY, _saved(matrix))
    n = size // 24
    sparse: dict[str, np.ndarray[Any, Any]] = {
        "indices": np.zeros(n, np.int32),
        "data": np.ones(n, np.float32),
        "shape": np.array([n, 4]),
    }
    coordinates: dict[str, np.ndarray[Any, Any]] = {
        "row": np.arange(n)[::-1].astype(np.int32),
        "col": np.zeros(n, np.int32),
        "data": np.ones(n),
        "shape": np.array([n, 4]),
    }
    for path in ("/v1/datasets", _PREDICT):
        yield Hostile(f"{path}: npz, a value a row", path, _NPZ, _zipped(indptr=np.arange(n + 1), **sparse))
        yield Hostile(f"{path}: npz, rows of nothing", path, _NPZ, _zipped(indptr=np.zeros(n + 1, np.int64), **sparse))
        yield Hostile(f"{path}: npz, coordinates backwards", path, _NPZ, _zipped(**coordinates))
        yield Hostile(
            f"{path}: npz, by columns",
            path,
            _NPZ,
            _zipped(format=np.array(b"csc"), indptr=np.array([0, n, n, n, n]), **sparse),
        )
        ids = np.full(size // 1024, "x" * 256)
        yield Hostile(f"{path}: npz, long ids", path, _NPZ, _zipped(X=np.ones((len(ids), 1)), ids=ids))
        yield Hostile(f"{path}: a zip of many members", path, _NPZ, _many_members(2000))


def _compressed(size: int, dataset: str) -> Iterator[Hostile]:
    texts = {
        ("options", "/v1/jobs", "POST"): b'{"model":"m","dataset":"'
        + dataset.encode()
        + b'","options":{"a":['
        + b"{}," * (size // 3)
        + b"0]}}",
        ("labels", f"/v1/datasets/{dataset}/labels", "PUT"): b'{"labels":{' + b'"0":0,' * (size // 6) + b'"0":0}}',
        ("documents", _PREDICT, "POST"): b'{"documents":[' + b'{"indices":[0]},' * (size // 16) + b'{"indices":[0]}]}',
        ("space", "/v1/datasets", "POST"): b'{"documents":[' + b" " * size + b"]}",
        ("zeros", "/v1/datasets", "POST"): bytes(size),
    }
    for (name, path, method), text in texts.items():
        packed = gzip.compress(text, 9, mtime=0)
        yield Hostile(f"gzip: {name}", path, _JSON, packed, method, "gzip")
        yield Hostile(f"gzip: {name}, cut short", path, _JSON, packed[:-9], method, "gzip")
    small = gzip.compress(b" ", mtime=0)
    yield Hostile("gzip: very many members", "/v1/datasets", _NDJSON, small * (size // 64), encoding="gzip")
    yield Hostile(
        "gzip: in gzip",
        "/v1/datasets",
        _NDJSON,
        gzip.compress(gzip.compress(bytes(size), mtime=0), mtime=0),
        encoding="gzip",
    )


def _zipped(**arrays: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _saved(matrix: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, matrix)
    return buffer.getvalue()


def _many_members(count: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.npy", b"")
    return buffer.getvalue()
