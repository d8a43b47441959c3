"""Mistakes that people make with the service, some two hundred: each answer names the thing and the remedy, and none is a failure of the service."""

import io
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.app.conftest import TWO_CLASSES, Gateway, publish
from tests.app.datasets.test_kinds import text_model

JSON, LINES, CSV, SVMLIGHT = "application/json", "application/x-ndjson", "text/csv", "text/x-svmlight"
NPZ, NPY = "application/x-npz", "application/x-npy"
Mistake = tuple[str, str | None, str | bytes, str]
"""call; media type; body, in which {vectors} and {texts} stand for ids of datasets; a part of the detail"""


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def sparse(matrix: Any) -> bytes:
    file = io.BytesIO()
    sp.save_npz(file, matrix)
    return file.getvalue()


UPLOAD = "POST /v1/datasets"

REFUSED: dict[str, Mistake] = {
    "csv no text column": (UPLOAD, CSV, "body,topic\na,b\n", "the body: text: no column is named 'text'; the first row has 'body', 'topic'; say whi"),
    "csv no header": (UPLOAD, CSV, "hello there,sport\nbye,x\n", "the body: text: no column is named 'text'; the first row has 'hello there', 'spor"),
    "csv short row": (UPLOAD, CSV, "text,label\na\n", "line 2: 1 fields, but the first row has 2; a field that has the separator or a line end mu"),
    "csv long row": (UPLOAD, CSV, "text,label\na,b,c\n", "line 2: 3 fields, but the first row has 2; a field that has the separator or a line end m"),
    "csv open quote": (UPLOAD, CSV, 'text,label\n"a,b\n', "the body: line 2: a quote that opens in this row is never closed"),
    "csv latin1": (UPLOAD, CSV, b"text,label\nK\xe4se,b\n", "the body: line 2: the byte 0xe4 is not UTF-8; save the table in UTF-8, or say what it "),
    "csv twice column": (UPLOAD, CSV, "text,text\na,b\n", "the body: text: the first row names the column 'text' twice"),
    "csv empty": (UPLOAD, CSV, "", "the body: the table is empty; its first row has the names of the columns, such as text,lab"),
    "csv header only": (UPLOAD, CSV, "text,label\n", "there is no document"),
    "csv dup id": (UPLOAD, CSV, "id,text\n1,a\n1,b\n", "document ids must differ: '1' is used twice, again by the document at position 1"),
    "csv utf16": (UPLOAD, CSV, b"\xff\xfet\x00e\x00x\x00t\x00,\x00l\x00a\x00b\x00e\x00l\x00\n\x00a\x00,\x00b\x00\n\x00", "the body: the text is in "),
    "csv is json": (UPLOAD, CSV, '{"text":"a"}\n', "the body: text: no column is named 'text'; the first row has '{\"text\":\"a\"}'; say which col"),
    "csv xlsx": (UPLOAD, CSV, b"PK\x03\x04abc", "the body: this is a zip file: of arrays, it is sent as application/x-npz; if it is a workb"),
    "csv gzip": (UPLOAD, CSV, b"\x1f\x8b\x08\x00\xf7<\x03k\x02\xff+I\xad(\xe1J\xe4\x02\x00D\x1f)a\x07\x00\x00\x00", "the body: gzip is sent with Co"),
    "csv html": (UPLOAD, CSV, "<html><body>404</body></html>", "the body: text: no column is named 'text'; the first row has '<html><body>404</body"),
    "xlsx type": (UPLOAD, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", b"PK\x03\x04", "a body of type application/vnd.openx"),
    "xls type": (UPLOAD, "application/vnd.ms-excel", "x", "a body of type application/vnd.ms-excel is not supported; save the table as CSV and send"),
    "no Parquet": (UPLOAD, "application/vnd.apache.parquet", "PAR1", "this is no Arrow or Parquet file, or one cut short"),
    "parquet octet": (UPLOAD, "application/octet-stream", "PAR1xxxx", "a body of type application/octet-stream is not supported; say what it really"),
    "no Arrow": (UPLOAD, "application/vnd.apache.arrow.stream", "x", "this is no Arrow or Parquet file, or one cut short"),
    "no type": (UPLOAD, None, '{"documents":[]}', "a body of type (none) is not supported; say what it is, as by -H 'Content-Type: text/csv';"),
    "form": (UPLOAD, "application/x-www-form-urlencoded", '{"documents":[{"text":"a"}]}', "a body of type application/x-www-form-urlencoded is not "),
    "plain": (UPLOAD, "text/plain", "hello", "a body of type text/plain is not supported; a document a line as JSON is application/x-ndj"),
    "multipart no file": (UPLOAD, "multipart/form-data; boundary=x", "--x--\r\n", "the body: the form has no file; send one, as curl -F file=@news."),
    "multipart no boundary": (UPLOAD, "multipart/form-data", "x", "multipart/form-data without a boundary is not supported; let the client write th"),
    "xml": (UPLOAD, "application/xml", "<a/>", "a body of type application/xml is not supported; write a document a line as JSON (applicat"),
    "yaml": (UPLOAD, "application/yaml", "a: b", "a body of type application/yaml is not supported; documents come as"),
    "pdf": (UPLOAD, "application/pdf", "%PDF", "a body of type application/pdf is not supported; documents come as"),
    "no zip": (UPLOAD, "application/zip", "PK", "not a zip file, or cut short"),
    "no tar": (UPLOAD, "application/x-tar", "text\na\n", "this is no tar archive; send a compressed table or lines with their own Content-Type"),
    "extra": (f"{UPLOAD}?extra=keeep", CSV, "text,who\na,b\n", "extra: 'keeep' is none of keep, ignore, refuse; did you mean 'keep'?"),
    "pickle": (UPLOAD, "application/x-pickle", "x", "a body of type application/x-pickle is not supported; documents come as"),
    "octet": (UPLOAD, "application/octet-stream", "hello", "a body of type application/octet-stream is not supported; say what it really is, as by "),
    "empty json": (UPLOAD, JSON, "", 'the body must be {"documents": [...]} and nothing else; one document a line is application'),
    "json null": (UPLOAD, JSON, "null", 'the body must be {"documents": [...]} and nothing else; one document a line is application'),
    "json string": (UPLOAD, JSON, '"hello"', 'the body must be {"documents": [...]} and nothing else; one document a line is application'),
    "json number": (UPLOAD, JSON, "1", 'the body must be {"documents": [...]} and nothing else; one document a line is application'),
    "json truncated": (UPLOAD, JSON, '{"documents":[{"text":"a"}', "malformed JSON: the text ends too early"),
    "json documents null": (UPLOAD, JSON, '{"documents":null}', 'the body must be {"documents": [...]} and nothing else; one document a line is app'),
    "json docs dict": (UPLOAD, JSON, '{"documents":{"text":"a"}}', 'the body must be {"documents": [...]} and nothing else; one document a line is '),
    "json data key": (UPLOAD, JSON, '{"data":[{"text":"a"}]}', 'the body must be {"documents": [...]} and nothing else; one document a line is appl'),
    "json document key": (UPLOAD, JSON, '{"document":[{"text":"a"}]}', 'the body must be {"documents": [...]} and nothing else; one document a line'),
    "json single quotes": (UPLOAD, JSON, "{'documents':[]}", 'the body must be {"documents": [...]} and nothing else; one document a line is applic'),
    "json nan": (UPLOAD, JSON, '{"documents":[{"text":"a","label":NaN}]}', "label: JSON is malformed: NaN is not a value of JSON; send null, or lea"),
    "json lines with commas": (UPLOAD, LINES, '{"text":"a"},\n{"text":"b"}\n', "line 1: the comma after the document is too much: a document"),
    "json line cut": (UPLOAD, LINES, '{"text":"a"\n{"text":"b"}\n', "line 1: JSON is malformed: the text ends too early"),
    "json vector name": (
        UPLOAD,
        LINES,
        '{"text":"a","vectors":{"a b":[1]}}',
        "vectors: line 1: has characters that it may not have; the name of a vector",
    ),
    "json text by name": (
        f"{UPLOAD}?text=body",
        LINES,
        '{"text":"a"}',
        "text: line 1: unknown field 'text'; known are indices, values, features, body",
    ),
    "json text is vector": (f"{UPLOAD}?text=vector", LINES, '{"vector":"a"}', "text: the field 'vector' has a meaning of its own in a document"),
    "json quoted name": (f"{UPLOAD}?text=a%22b", LINES, '{"text":"a"}', "text: the name of a field has no quotes, backslashes or control characters"),
    "svm text by name": (f"{UPLOAD}?text=body", SVMLIGHT, "1 1:1", "text: names a column of a table or a field of JSON; text/x-svmlight has neither"),
    "csv text is label": (f"{UPLOAD}?label=text", CSV, "text\na\n", "label: the column 'text' holds the text already"),
    "type svmlight": (UPLOAD, "text/svmlight", "1 1:1", "text/svmlight is not supported; did you mean text/x-svmlight? documents come as"),
    "type json": (UPLOAD, "text/json", "{}", "text/json is not supported; did you mean application/json? documents come as"),
    "empty docs": (UPLOAD, JSON, '{"documents": []}', "there is no document"),
    "json trailing": (UPLOAD, JSON, '{"documents": [{"text": "a"}]}xyz', 'the body must be {"documents": [...]} and nothing else; one document a li'),
    "unknown field txt": (UPLOAD, JSON, '{"documents": [{"txt": "a"}]}', "txt: unknown field 'txt'; did you mean 'text'? known are"),
    "unknown field Text": (UPLOAD, JSON, '{"documents": [{"Text": "a"}]}', "Text: unknown field 'Text'; did you mean 'text'? known are"),
    "unknown lable": (UPLOAD, JSON, '{"documents": [{"text": "a", "lable": "b"}]}', "lable: unknown field 'lable'; did you mean 'label'? known are"),
    "unknown meta": (UPLOAD, JSON, '{"documents": [{"text": "a", "meta": {"x": 1}}]}', "meta: unknown field 'meta'; known are"),
    "class": (UPLOAD, JSON, '{"documents": [{"text": "a", "class": "b"}]}', "class: unknown field 'class'; did you mean 'label'? known are"),
    "target": (UPLOAD, JSON, '{"documents": [{"text": "a", "target": 1}]}', "target: unknown field 'target'; did you mean 'label'? known are"),
    "category": (UPLOAD, JSON, '{"documents": [{"text": "a", "category": "x"}]}', "category: unknown field 'category'; did you mean 'label'? known "),
    "labels list": (UPLOAD, JSON, '{"documents": [{"text": "a", "labels": ["x", "y"]}]}', "labels: unknown field 'labels'; did you mean 'label'? kn"),
    "labels empty": (UPLOAD, JSON, '{"documents": [{"text": "a", "labels": []}]}', "labels: unknown field 'labels'; did you mean 'label'? known are"),
    "text number": (UPLOAD, JSON, '{"documents": [{"text": 5}]}', "text: must be a text, not an integer"),
    "text list": (UPLOAD, JSON, '{"documents": [{"text": ["a"]}]}', "text: must be a text, not an array"),
    "text bytes": (UPLOAD, JSON, '{"documents": [{"text": {"a": 1}}]}', "text: must be a text, not an object"),
    "text none": (UPLOAD, JSON, '{"documents": [{"text": null}]}', "text: is missing or null; a document has at least one of text, features, indice"),
    "empty doc": (UPLOAD, JSON, '{"documents": [{}]}', "text: is missing or null; a document has at least one of text, features, indices, vector, "),
    "label only": (UPLOAD, JSON, '{"documents": [{"label": "x"}]}', "text: is missing or null; a document has at least one of text, features, indic"),
    "id dup": (UPLOAD, JSON, '{"documents": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}', "document ids must differ: 'a' is used twice, a"),
    "id int str dup": (UPLOAD, JSON, '{"documents": [{"id": 1, "text": "x"}, {"id": "1", "text": "y"}]}', "document ids must differ: '1' is used tw"),
    "id empty": (UPLOAD, JSON, '{"documents": [{"id": "", "text": "x"}]}', "id: must have at least 1 character; an id is a text or an integer"),
    "id float": (UPLOAD, JSON, '{"documents": [{"id": 1.5, "text": "x"}]}', "id: must be an integer or a text, not a fraction; an id is a text or"),
    "label float": (UPLOAD, JSON, '{"documents": [{"text": "x", "label": 0.5}]}', "label: 0.5 is a float with a fraction; a label is a text or an i"),
    "label mixed": (UPLOAD, JSON, '{"documents": [{"text": "x", "label": 1}, {"text": "y", "label": "a"}]}', "label: labels must be all strings or "),
    "label bool": (UPLOAD, JSON, '{"documents": [{"text": "x", "label": true}]}', "label: must be a number or a text, not true or false; a label is"),
    "label big int": (UPLOAD, JSON, '{"documents": [{"text": "x", "label": 1180591620717411303424}]}', "label: must be at most 9223372036854775807;"),
    "mixed kinds": (UPLOAD, JSON, '{"documents": [{"text": "x"}, {"indices": [1]}]}', "indices: earlier documents have text; a document may have mo"),
    "idx neg": (UPLOAD, JSON, '{"documents": [{"indices": [-1]}]}', "indices: must be at least 0"),
    "idx float": (UPLOAD, JSON, '{"documents": [{"indices": [1.5]}]}', "indices: must be an integer, not a fraction"),
    "idx dup": (UPLOAD, JSON, '{"documents": [{"indices": [1, 1]}]}', "indices: index 1 is repeated"),
    "idx huge": (UPLOAD, JSON, '{"documents": [{"indices": [1099511627776]}]}', "indices: must be at most 2147483647"),
    "idx str": (UPLOAD, JSON, '{"documents": [{"indices": ["1"]}]}', "indices: must be an integer, not a text"),
    "values len": (UPLOAD, JSON, '{"documents": [{"indices": [1, 2], "values": [1.0]}]}', "values: has 1 numbers, but indices has 2"),
    "values nan str": (UPLOAD, JSON, '{"documents": [{"indices": [1], "values": ["nan"]}]}', "values: must be a number, not a text"),
    "values alone": (UPLOAD, JSON, '{"documents": [{"values": [1.0]}]}', "text: is missing or null; a document has at least one of text, features, "),
    "values null": (UPLOAD, JSON, '{"documents": [{"indices": [1], "values": [null]}]}', "values: must be a number, not null"),
    "1e39": (UPLOAD, JSON, '{"documents":[{"indices":[1],"values":[1e39]}]}', "values: the value of index 1 is not a finite number, or beyond 3.4e3"),
    "1e999": (UPLOAD, JSON, '{"documents":[{"indices":[1],"values":[1e999]}]}', "values: a number is out of range: beyond 1.8e308"),
    "features list": (UPLOAD, JSON, '{"documents": [{"features": [1, 2]}]}', "features: must be an object of names and numbers"),
    "features str val": (UPLOAD, JSON, '{"documents": [{"features": {"a": "b"}}]}', "features: the value of 'a' is not a number"),
    "features bool": (UPLOAD, JSON, '{"documents": [{"features": {"a": true}}]}', "features: the value of 'a' is not a number"),
    "features nested": (UPLOAD, JSON, '{"documents": [{"features": {"a": {"b": 1}}}]}', "features: the value of 'a' is not a number"),
    "features null val": (UPLOAD, JSON, '{"documents": [{"features": {"a": null}}]}', "features: the value of 'a' is not a number"),
    "vector str": (UPLOAD, JSON, '{"documents": [{"vector": "a"}]}', "vector: must be an array, not a text"),
    "vector lens": (UPLOAD, JSON, '{"documents": [{"vector": [1, 2]}, {"vector": [1]}]}', "vector: has 1 numbers, but earlier ones have 2"),
    "vector empty": (UPLOAD, JSON, '{"documents": [{"vector": []}]}', "vector: has no number; a document without a vector leaves it out"),
    "vector none": (UPLOAD, JSON, '{"documents": [{"vector": [null]}]}', "vector: must be a number, not null"),
    "vectors list": (UPLOAD, JSON, '{"documents": [{"vectors": [1, 2]}]}', "vectors: must be an object, not an array"),
    "drawn bad": (UPLOAD, JSON, '{"documents": [{"text": "a", "label": "x", "drawn": "rand"}]}', "drawn: unknown value 'rand'; it is one of unknown"),
    "drawn no label": (UPLOAD, JSON, '{"documents": [{"text": "a", "drawn": "random"}]}', "drawn: says how a label was come by, but the document ha"),
    "surrogate": (UPLOAD, JSON, '{"documents":[{"text":"\\ud800"}]}', "text: JSON is malformed: \\ud800 is half of a character, and the other half "),
    "svm label frac": (UPLOAD, SVMLIGHT, "1.5 1:1\n", "label: line 1: the label '1.5' is not an integer (0: unlabeled); labels that are words nee"),
    "svm nan": (UPLOAD, SVMLIGHT, "1 1:nan\n", "values: line 1: 'nan' is not a finite number, or beyond 3.4e38, the largest of float32"),
    "svm missing colon": (UPLOAD, SVMLIGHT, "1 1 2\n", "indices: line 1: '1' is not index:value"),
    "svm text": (UPLOAD, SVMLIGHT, "hello world\n", "label: line 1: the label 'hello' is not an integer (0: unlabeled); labels that are words n"),
    "svm multi label": (UPLOAD, SVMLIGHT, "1,2 1:1\n", "label: line 1: the label '1,2' is not an integer (0: unlabeled); labels that are words nee"),
    "svm empty": (UPLOAD, SVMLIGHT, "", "there is no document"),
    "npz missing": (UPLOAD, NPZ, npz(a=np.eye(2)), "a: unexpected member 'a.npy'; the arrays are indptr, indices, data, shape, row, col, X, te"),
    "npz object": (UPLOAD, NPZ, npz(text=np.array(["a", None], object)), "text: is an array of Python objects, which are never unpickled; send text"),
    "npz pickle": (UPLOAD, NPZ, npy(np.zeros(3)), "this is a .npy file, of one array; it is sent as application/x-npy"),
    "npz csr noshape": (UPLOAD, NPZ, npz(indptr=np.array([0, 1]), indices=np.array([0])), "data: the array data is missing; required are indptr, in"),
    "npz lens": (UPLOAD, NPZ, npz(X=np.eye(3), y=np.array([1, 2])), "y: unexpected member 'y.npy'; did you mean 'labels'? the arrays are indptr, in"),
    "npz nan": (UPLOAD, NPZ, npz(X=np.array([[np.nan]])), "values: the value of index 0 is not a finite number, or beyond 3.4e38, the largest of fl"),
    "npz 3d": (UPLOAD, NPZ, npz(X=np.zeros((2, 2, 2))), "X: must have two dimensions, documents and features, not 3"),
    "npz 1d": (UPLOAD, NPZ, npz(X=np.zeros(3)), "X: must have two dimensions, documents and features, not 1"),
    "npz complex": (UPLOAD, NPZ, npz(X=np.eye(2) * 1j), "X: is an array of complex128, which is not accepted; send its real part"),
    "npz str X": (UPLOAD, NPZ, npz(X=np.array([["a"]])), "X: is an array of <U1, which is not accepted; an array of texts is called text"),
    "npz dia": (UPLOAD, NPZ, sparse(sp.eye(3).todia()), "format: the matrix is in 'dia' format; send it by rows, as of matrix.tocsr()"),
    "npz trunc": (UPLOAD, NPZ, npz(X=np.eye(3))[:-30], "not a zip file, or cut short"),
    "npy 1d": (UPLOAD, NPY, npy(np.zeros(3)), "X: must have two dimensions, documents and features, not 1"),
    "npy object": (UPLOAD, NPY, npy(np.array([1, "a"], object)), "X: is an array of Python objects, which are never unpickled; send X.astype('float"),
    "npy text": (UPLOAD, NPY, npy(np.array(["a", "b"])), "X: is an array of <U1, which is not accepted; an array of texts is called text"),
    "npy nan": (UPLOAD, NPY, npy(np.array([[np.inf]])), "values: the value of index 0 is not a finite number, or beyond 3.4e38, the largest of floa"),
    "npz labels name": (UPLOAD, NPZ, npz(X=np.eye(2), target=np.array([1, 2])), "target: unexpected member 'target.npy'; did you mean 'labels'? the"),
    "query txt": ("POST /v1/datasets?txt=body", CSV, "body\na\n", "txt: unknown query parameter; did you mean 'text'? known are"),
    "query text missing": ("POST /v1/datasets?text=Body", CSV, "body,x\na,b\n", "the body: text: no column is named 'Body'; the first row has 'body"),
    "query on json": ("POST /v1/datasets?text=body", JSON, '{"documents": [{"text": "a"}]}', "text: unknown field 'text'; known are"),
    "name space": ("POST /v1/datasets?name=my%20data", JSON, '{"documents": [{"text": "a"}]}', "dataset 'my data': 1 to 128 letters, digits, '.', '"),
    "name slash": ("POST /v1/datasets?name=a/b", JSON, '{"documents": [{"text": "a"}]}', "dataset 'a/b': 1 to 128 letters, digits, '.', '_' or '-',"),
    "query twice": ("POST /v1/datasets?name=a&name=b", JSON, '{"documents": [{"text": "a"}]}', "name: is given more than once"),
    "job no model": ("POST /v1/jobs", JSON, '{"dataset": "{vectors}"}', "model: is missing"),
    "job model space": ("POST /v1/jobs", JSON, '{"model": "my model", "dataset": "{vectors}"}', "model 'my model': 1 to 128 letters, digits, '.', '"),
    "job model umlaut": ("POST /v1/jobs", JSON, '{"model": "K\\u00e4se", "dataset": "{vectors}"}', "model 'Käse': 1 to 128 letters, digits, '.', '_"),
    "job model list": ("POST /v1/jobs", JSON, '{"model": ["a"], "dataset": "{vectors}"}', "model: must be a text, not an array"),
    "job algo case": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "algorithm": "SVM"}', "unknown algorithm 'SVM'; did you mea"),
    "job algo logreg": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "algorithm": "logistic"}', "unknown algorithm 'logistic';"),
    "job algo tsvm typo": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "algorithm": "tsmv"}', "unknown algorithm 'tsmv'; did "),
    "job opt str": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "options": "lambda=1"}', "options: must be an object, not a t"),
    "job data": ("POST /v1/jobs", JSON, '{"model": "news", "data": "{vectors}"}', "data: unknown field 'data'; did you mean 'dataset'? known are"),
    "job dataset name": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "my data"}', "there is no dataset 'my data'; a dataset goes by the id"),
    "job dataset none": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": null}', "dataset: give either dataset or documents"),
    "job dataset list": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": ["{vectors}"]}', "dataset: must be a text, not an array"),
    "job dataset other": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "ds-0000"}', "there is no dataset 'ds-0000'"),
    "job seed str": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "seed": "1"}', "seed: must be an integer, not a text"),
    "job seed big": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "seed": 1099511627776}', "seed: must be at most 4294967295"),
    "job text opt": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "text": {"ngrams": 2}}', "text: is for documents that have t"),
    "job text ngram 3": ("POST /v1/jobs", JSON, '{"model": "n", "dataset": "{texts}", "text": {"ngrams": 3}}', "text.ngrams: Input should be 1 or 2"),
    "job text typo": ("POST /v1/jobs", JSON, '{"model": "n", "dataset": "{texts}", "text": {"ngram": 2}}', "text.ngram: unknown option; did you mea"),
    "job encoder": ("POST /v1/jobs", JSON, '{"model": "n", "dataset": "{texts}", "encoder": "minilm"}', "encoder: 'minilm' is not known here; HALFM"),
    "job publish": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "publish": "never"}', "publish: unknown value 'never'; it is "),
    "job start": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "start_from": "nothing"}', "start_from: auto cannot start from "),
    "job ann": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "annotations": "all"}', "annotations: unknown value 'all'; it is "),
    "job ann n": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "annotations": 5}', "annotations: the log of the dataset has 0 "),
    "job docs unlabeled": ("POST /v1/jobs", JSON, '{"model": "n", "documents": [{"text": "a"}, {"text": "b"}]}', "training needs labeled documents "),
    "job lamda null": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "options": null}', "options: must be an object, not null"),
    "job tags": ("POST /v1/jobs", JSON, '{"model": "news", "dataset": "{vectors}", "tags": ["a"]}', "tags: unknown field 'tags'; known are"),
    "job csv": ("POST /v1/jobs", CSV, "text,label\na,b\n", "a body of type text/csv is not supported; this body must be application/json"),
    "job none": ("POST /v1/jobs", None, "", "a body of type (none) is not supported; this body must be application/json"),
    "job array": ("POST /v1/jobs", JSON, '[{"model": "news", "dataset": "{vectors}"}]', "must be an object, not an array"),
    "pred list": ("POST /v1/models/words/predict", JSON, '["hello"]', 'the body must be {"documents": [...]} and nothing else; one document a line '),
    "pred text": ("POST /v1/models/words/predict", JSON, '{"text": "hello"}', 'the body must be {"documents": [...]} and nothing else; one document'),
    "pred texts": ("POST /v1/models/words/predict", JSON, '{"texts": ["hello"]}', 'the body must be {"documents": [...]} and nothing else; one docu'),
    "pred docs str": ("POST /v1/models/words/predict", JSON, '{"documents": ["hello"]}', 'a text alone is not a document; write {"text": "..."}'),
    "pred docs one": ("POST /v1/models/words/predict", JSON, '{"documents": {"text": "a"}}', 'the body must be {"documents": [...]} and nothing els'),
    "pred instances": ("POST /v1/models/words/predict", JSON, '{"instances": ["a"]}', 'the body must be {"documents": [...]} and nothing else; one '),
    "pred inputs": ("POST /v1/models/words/predict", JSON, '{"inputs": "a"}', 'the body must be {"documents": [...]} and nothing else; one document'),
    "pred vec": ("POST /v1/models/words/predict", JSON, '{"documents": [{"indices": [1]}]}', "indices: the model was trained on text and takes text"),
    "pred empty": ("POST /v1/models/words/predict", JSON, '{"documents": []}', "there is no document"),
    "pred string": ("POST /v1/models/words/predict", JSON, '"hello"', 'the body must be {"documents": [...]} and nothing else; one document a line '),
    "pred feat": ("POST /v1/models/words/predict", JSON, '{"documents": [{"features": {"a": 1}}]}', "features: the model was trained on text and ta"),
    "pred none": ("POST /v1/models/words/predict", JSON, "{}", 'the body must be {"documents": [...]} and nothing else; one document a line is appl'),
    "pred plain": ("POST /v1/models/words/predict", "text/plain", "hello", "a body of type text/plain is not supported; a document a line as JSON i"),
    "pred GET": ("GET /v1/models/words/predict", None, "", "GET is not possible here; possible are POST"),
    "pred unknown": ("POST /v1/models/wrods/predict", JSON, '{"documents": [{"text": "a"}]}', "there is no model 'wrods'; GET /v1/models lists all"),
    "pred alias": (
        "POST /v1/models/words@live/predict",
        JSON,
        '{"documents": [{"text": "a"}]}',
        "there is no model alias 'words@live'; GET /v1/models/words lists all",
    ),
    "pred version": ("POST /v1/models/words/versions/9/predict", JSON, '{"documents": [{"text": "a"}]}', "there is no model version 'words/9'; GET "),
    "pred ver text": ("POST /v1/models/words/versions/v1/predict", JSON, '{"documents": [{"text": "a"}]}', "there is no model version 'words/v1'; G"),
    "pred vectors text": ("POST /v1/models/news/predict", JSON, '{"documents": [{"text": "a"}]}', "text: the model was trained on vectors and takes"),
    "path typo": ("GET /v1/dataset", None, "", "nothing is at /v1/dataset; /docs describes every call"),
    "path slash": ("GET /v1/datasets/", None, "", "nothing is at /v1/datasets/; /docs describes every call"),
    "method": ("PUT /v1/jobs", None, "", "PUT is not possible here; possible are GET, POST"),
    "limit": ("GET /v1/jobs?limit=100000", None, "", "limit: Input should be less than or equal to 500"),
    "state": ("GET /v1/jobs?state=done", None, "", "state: Input should be 'queued', 'running', 'cancelling', 'cancelled', 'succeeded' or 'fai"),
    "label typo": ("POST /v1/models/words/label", JSON, '{"txt": "a"}', "txt: unknown field 'txt'; did you mean 'text'? known are"),
    "label list": ("POST /v1/models/words/label", JSON, '["a"]', "must be an object, not an array"),
    "alias name": ("PUT /v1/models/words/aliases/a%20b", JSON, '{"version": 1}', "alias 'a b': 1 to 128 letters, digits, '.', '_' or '-', starting "),
    "alias ver str": ("PUT /v1/models/words/aliases/live", JSON, '{"version": "1"}', "version: must be an integer, not a text"),
    "alias ver none": ("PUT /v1/models/words/aliases/live", JSON, '{"version": 9}', "there is no model version 'words/9'; GET /v1/models/words list"),
    "lab flat": ("PUT /v1/datasets/{texts}/labels", JSON, '{"a": "n"}', "a: unknown field 'a'; known are"),
    "lab list": ("PUT /v1/datasets/{texts}/labels", JSON, '{"labels": ["a"]}', "labels: must be an object of values by document id"),
    "lab unknown id": ("PUT /v1/datasets/{texts}/labels", JSON, '{"labels": {"zz": "n"}}', "id: there is no such document"),
    "lab int id": ("PUT /v1/datasets/{texts}/labels", JSON, '{"labels": {"a": 1.5}}', "label: must be a string or an integer"),
    "lab list val": ("PUT /v1/datasets/{texts}/labels", JSON, '{"labels": {"a": ["n"]}}', "label: must be a string or an integer"),
    "lab mixed": ("PUT /v1/datasets/{texts}/labels", JSON, '{"labels": {"a": 5}}', "label: labels must be all strings or all integers"),
    "ann flat": ("POST /v1/datasets/{texts}/annotations", JSON, '{"document": "a", "label": "n"}', "document: unknown field 'document'; known are"),
    "ann no id": ("POST /v1/datasets/{texts}/annotations", JSON, '{"annotations": [{"document": "a", "label": "n"}]}', "annotations[0].id: is missi"),
    "ann no label": ("POST /v1/datasets/{texts}/annotations", JSON, '{"annotations": [{"id": "1", "document": "a"}]}', "label: is missing; the acti"),
    "sug none": ("POST /v1/models/words/suggest", JSON, "{}", "dataset: is missing"),
    "sug n0": ("POST /v1/models/words/suggest", JSON, '{"dataset": "{texts}", "n": 0}', "n: must be at least 1"),
    "sug strategy": ("POST /v1/models/words/suggest", JSON, '{"dataset": "{texts}", "strategy": "uncertainty"}', "strategy: unknown value 'uncertai"),
    "sug vec": ("POST /v1/models/words/suggest", JSON, '{"dataset": "{vectors}"}', "dataset: the model was trained on text and takes text, not indi"),
    "sug inc": ("POST /v1/models/words/suggest", JSON, '{"dataset": "{texts}", "include": ["documents"]}', "include[0]: unknown value 'documents'; "),
    "eval extra": (
        "POST /v1/models/words/evaluate?extra=ignore",
        JSON,
        '{"dataset": "{texts}"}',
        "extra: is for documents in the body: those of a dataset have been read",
    ),
    "eval column": (
        "POST /v1/models/words/evaluate?label=y",
        JSON,
        '{"dataset": "{texts}"}',
        "label: is for documents in the body: those of a dataset",
    ),
    "eval table": ("POST /v1/models/words/evaluate", CSV, "text,topic\nx,n\n", "send labeled documents; of a table ?label=NAME names the column of"),
    "eval held out": ("GET /v1/models/words/evaluate?dataset={texts}&held_out=maybe", None, "", "held_out: must be true or false, not a text"),
    "expl extra": ("POST /v1/models/words/explain?extra=keep", JSON, "{}", "extra: is for documents in the body: it has none"),
    "job unknown": ("GET /v1/jobs/job-1", None, "", "there is no job 'job-1'; GET /v1/jobs lists all"),
    "dataset unknown": ("GET /v1/datasets/ds-1", None, "", "there is no dataset 'ds-1'; GET /v1/datasets lists all"),
    "webhook unknown": ("DELETE /v1/webhooks/1", None, "", "there is no webhook '1'; GET /v1/webhooks lists all"),
    "eval none": ("POST /v1/models/words/evaluate", JSON, "{}", "dataset: give either dataset or documents"),
    "eval nolabel": ("POST /v1/models/words/evaluate", JSON, '{"documents": [{"text": "a"}]}', "no document has a label to compare with; send label"),
    "eval ds": ("POST /v1/models/words/evaluate", JSON, '{"dataset": "x"}', "there is no dataset 'x'; a dataset goes by the id that its upload answ"),
    "eval vec": ("POST /v1/models/words/evaluate", JSON, '{"dataset": "{vectors}"}', "dataset: the model was trained on text and takes text, not in"),
    "expl": ("POST /v1/models/words/explain", JSON, '{"documents": [{"text": "a"}], "class": "zzz"}', "class: the model has no such class; it has p"),
    "ctype json5": ("POST /v1/models/words/predict", JSON, "{documents:[]}", 'the body must be {"documents": [...]} and nothing else; one document '),
    "options C": (
        "POST /v1/jobs",
        JSON,
        '{"model": "news", "dataset": "{vectors}", "algorithm": "svm", "options": {"C": 1}}',
        "C: unknown option; did you mean 'lambda'? known are",
    ),
    "an action unknown": (
        "POST /v1/datasets/{texts}/annotations",
        JSON,
        '{"annotations": [{"id": "1", "document": "a", "action": "accept"}]}',
        "unknown value 'accept'; it is one of label, skip, undo",
    ),
    "a time": (
        "POST /v1/datasets/{texts}/annotations",
        JSON,
        '{"annotations": [{"id": "1", "document": "a", "label": "n", "at": "yesterday"}]}',
        "at: must be a time such as 2026-01-31T12:00:00Z",
    ),
}

WARNED: dict[str, Mistake] = {
    "csv all unlabeled": (UPLOAD, CSV, "text,label\na,\nb,\n", "no document is labeled"),
    "csv one class": (UPLOAD, CSV, "text,label\na,x\nb,x\nc,\n", "all labels are 'x'"),
    "label space": (UPLOAD, JSON, '{"documents": [{"text": "x", "label": " "}]}', "all labels are ' '"),
    "svm 01": (UPLOAD, SVMLIGHT, "0 1:1\n1 2:1\n0 1:2\n", "all labels are 1 or 0, and 0 is read as unlabeled"),
    "svm -1 1": (UPLOAD, SVMLIGHT, "-1 1:1\n+1 2:1\n0 3:1\n", "class -1 has one labeled document; class 1 has one labeled document"),
    "one class json": (UPLOAD, JSON, '{"documents": [{"text": "a b", "label": "x"}, {"text": "b c"}]}', "all labels are 'x'"),
    "Chinese": (
        UPLOAD,
        JSON,
        '{"documents": [{"text": "今天天气很好我们去公园散步吧"}]}',
        "1 text in Chinese or Japanese without spaces",
    ),
    "labels in two cases": (UPLOAD, CSV, "text,label\na,Sport\nb,sport\n", "labels 'Sport' and 'sport' differ in case or spaces alone"),
    "labels that are none": (UPLOAD, CSV, "text,label\na,None\nb,sport\n", "labels such as 'None' look like missing values"),
}
"""accepted, and probably not meant"""


def test_each_mistake_is_named_with_its_remedy(gateway: Gateway) -> None:
    """On one gateway, so that two hundred calls take as long as one test."""
    publish(gateway.store, "words", model=text_model())
    publish(gateway.store)
    texts = [{"id": "a", "text": "x y", "label": "n"}, {"id": "b", "text": "x z", "label": "m"}, {"id": "c", "text": "q"}]
    ids = {"{vectors}": gateway.upload(TWO_CLASSES)["id"], "{texts}": gateway.upload(texts)["id"]}
    wrong = {}
    for name, (call, media_type, body, detail) in (REFUSED | WARNED).items():
        method, path = call.split(" ", 1)
        for word, id in ids.items():
            path, body = path.replace(word, id), body.replace(word, id) if isinstance(body, str) else body
        answer = gateway.client.request(method, path, content=body, headers={} if media_type is None else {"content-type": media_type})
        content = answer.json()
        said = content.get("detail") or "; ".join(content.get("warnings", []))
        if detail not in said or answer.is_success is (name in REFUSED) or answer.is_server_error:
            wrong[name] = (answer.status_code, said)
    assert wrong == {}


def test_there_are_as_many_as_were_tried() -> None:
    assert len(REFUSED) + len(WARNED) >= 160
