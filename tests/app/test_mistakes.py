"""Mistakes that people make with the service, some two hundred: each answer names the thing and the remedy, and none is
a failure of the service.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import yaml

from tests.app.codecs.encodings import as_npy, npz, scipy_npz
from tests.app.conftest import TWO_CLASSES, Gateway, publish, text_model

CSV = "text/csv"
NPZ, NPY = "application/x-npz", "application/x-npy"
Mistake = tuple[str, str | None, str | bytes, str]
"""call; media type; body, in which {vectors} and {texts} stand for ids of datasets; a part of the detail"""


UPLOAD = "POST /v1/datasets"


WRITTEN = yaml.load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
BINARY: dict[str, Mistake] = {
    "csv latin1": (
        UPLOAD,
        CSV,
        b"text,label\nK\xe4se,b\n",
        "line 2: the byte 0xe4 is not UTF-8; save the table in UTF-8, or say what it ",
    ),
    "csv utf16": (
        UPLOAD,
        CSV,
        b"\xff\xfet\x00e\x00x\x00t\x00,\x00l\x00a\x00b\x00e\x00l\x00\n\x00a\x00,\x00b\x00\n\x00",
        "the text is in ",
    ),
    "csv xlsx": (
        UPLOAD,
        CSV,
        b"PK\x03\x04abc",
        "this is a zip file: of arrays, it is sent as application/x-npz; if it is a workb",
    ),
    "csv gzip": (
        UPLOAD,
        CSV,
        b"\x1f\x8b\x08\x00\xf7<\x03k\x02\xff+I\xad(\xe1J\xe4\x02\x00D\x1f)a\x07\x00\x00\x00",
        "gzip is sent with Co",
    ),
    "xlsx damaged": (
        UPLOAD,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        b"PK\x03\x04",
        "this is no workbook that can be read, or one cut short: ",
    ),
    "npz missing": (
        UPLOAD,
        NPZ,
        npz({"a": np.eye(2)}),
        "a: unexpected member 'a.npy'; the arrays are indptr, indices, data, shape, row, col, X, te",
    ),
    "npz object": (
        UPLOAD,
        NPZ,
        npz({"text": np.array(["a", None], object)}),
        "text: is an array of Python objects, which are never unpickled; send text",
    ),
    "npz pickle": (
        UPLOAD,
        NPZ,
        as_npy(np.zeros(3)),
        "this is a .npy file, of one array; it is sent as application/x-npy",
    ),
    "npz csr noshape": (
        UPLOAD,
        NPZ,
        npz({"indptr": np.array([0, 1]), "indices": np.array([0])}),
        "data: the array data is missing; required are indptr, in",
    ),
    "npz lens": (
        UPLOAD,
        NPZ,
        npz({"X": np.eye(3), "y": np.array([1, 2])}),
        "y: unexpected member 'y.npy'; did you mean 'labels'? the arrays are indptr, in",
    ),
    "npz nan": (
        UPLOAD,
        NPZ,
        npz({"X": np.array([[np.nan]])}),
        "values: the value of index 0 is not a finite number, or beyond 3.4e38, the largest of fl",
    ),
    "npz 3d": (
        UPLOAD,
        NPZ,
        npz({"X": np.zeros((2, 2, 2))}),
        "X: must have two dimensions, documents and features, not 3",
    ),
    "npz 1d": (UPLOAD, NPZ, npz({"X": np.zeros(3)}), "X: must have two dimensions, documents and features, not 1"),
    "npz complex": (
        UPLOAD,
        NPZ,
        npz({"X": np.eye(2) * 1j}),
        "X: is an array of complex128, which is not accepted; send its real part",
    ),
    "npz str X": (
        UPLOAD,
        NPZ,
        npz({"X": np.array([["a"]])}),
        "X: is an array of <U1, which is not accepted; an array of texts is called text",
    ),
    "npz dia": (
        UPLOAD,
        NPZ,
        scipy_npz(sp.eye(3).todia()),
        "format: the matrix is in 'dia' format; send it by rows, as of matrix.tocsr()",
    ),
    "npz trunc": (UPLOAD, NPZ, npz({"X": np.eye(3)})[:-30], "not a zip file, or cut short"),
    "npy 1d": (UPLOAD, NPY, as_npy(np.zeros(3)), "X: must have two dimensions, documents and features, not 1"),
    "npy object": (
        UPLOAD,
        NPY,
        as_npy(np.array([1, "a"], object)),
        "X: is an array of Python objects, which are never unpickled; send X.astype('float",
    ),
    "npy text": (
        UPLOAD,
        NPY,
        as_npy(np.array(["a", "b"])),
        "X: is an array of <U1, which is not accepted; an array of texts is called text",
    ),
    "npy nan": (
        UPLOAD,
        NPY,
        as_npy(np.array([[np.inf]])),
        "values: the value of index 0 is not a finite number, or beyond 3.4e38, the largest of floa",
    ),
    "npz labels name": (
        UPLOAD,
        NPZ,
        npz({"X": np.eye(2), "target": np.array([1, 2])}),
        "target: unexpected member 'target.npy'; did you mean 'labels'? the",
    ),
}
REFUSED: dict[str, Mistake] = BINARY | {name: tuple(each.values()) for name, each in WRITTEN["refused"].items()}
WARNED: dict[str, Mistake] = {name: tuple(each.values()) for name, each in WRITTEN["warned"].items()}
"""accepted, and probably not meant"""


def test_each_mistake_is_named_with_its_remedy(gateway: Gateway) -> None:
    """On one gateway, so that two hundred calls take as long as one test."""
    publish(gateway.store, "words", model=text_model())
    publish(gateway.store)
    texts = [
        {"id": "a", "text": "x y", "label": "n"},
        {"id": "b", "text": "x z", "label": "m"},
        {"id": "c", "text": "q"},
    ]
    ids = {"{vectors}": gateway.upload(TWO_CLASSES)["id"], "{texts}": gateway.upload(texts)["id"]}
    wrong = {}
    for name, (call, media_type, body, detail) in (REFUSED | WARNED).items():
        method, path = call.split(" ", 1)
        for word, id in ids.items():
            path, body = path.replace(word, id), body.replace(word, id) if isinstance(body, str) else body
        answer = gateway.client.request(
            method, path, content=body, headers={} if media_type is None else {"content-type": media_type}
        )
        content = answer.json()
        said = content.get("detail") or "; ".join(content.get("warnings", []))
        if detail not in said or answer.is_success is (name in REFUSED) or answer.is_server_error:
            wrong[name] = (answer.status_code, said)
    assert wrong == {}


def test_there_are_as_many_as_were_tried() -> None:
    assert len(REFUSED) + len(WARNED) >= 160
