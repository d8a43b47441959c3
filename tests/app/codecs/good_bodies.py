"""Bodies that are read, of each format: tests and benchmarks damage them."""

import gzip

import numpy as np
import pyarrow as pa

from tests.app.codecs.encodings import arrow_file, arrow_stream, as_npy, npz, parquet, tar_of, zip_of
from tests.app.codecs.tables.workbooks import DATE, XLSX, workbook

CONTENT_TYPES = {"multipart/form-data": "multipart/form-data; boundary=x"}
"""Content-Type of a media type that needs parameters."""
GOOD: dict[str, list[bytes]] = {
    "application/json": [
        b'{"documents": [{"id": "a", "indices": [0, 7], "values": [1, -2.5e3], "label": "x"}, {"indices": [], '
        b'"label": null}]}',
        b'{"documents": [{"id": "a", "text": "a } \\" { \\u00e9", "label": "x"}, {"text": ""}, {"label": 3, '
        b'"text": "b"}]}',
        b'{"documents": [{"features": {"a}": 1, "b\\"": -2.5e3}, "label": "x"}, {"features": {}}, {"id": "c", '
        b'"features": {"b": 0}}]}',
        b'{"documents": [{"text": "a", "labels": ["x", "y"], "not": ["z"], "votes": {"r": "x", "m": {"y": 0.5}}}, '
        b'{"text": "", "labels": [], "weight": 2}]}',
        b'{"documents": [{"text": "a }", "vector": [1, 0.5]}, {"id": "c", "vector": [0, -2e3], "features": '
        b'{"b{": 0}, "vectors": {"x": [1]}}]}',
    ],
    "application/x-ndjson": [
        b'{"id": "a\\u00e9", "indices": [0, 7], "values": [1.5, 2]}\n{"indices": [3], "label": 4}\n',
        b'{"text": "x y", "label": 4}\n{"text": ""}\n',
        b'{"text": "x", "labels": ["a", "b"], "not": ["c"], "votes": {"r": "a", "m": {"b": 0.5}}}\n'
        b'{"text": "", "weight": 2}\n',
        b'{"features": {"x": 1, "y": 2}}\n{"features": {}}\n',
        b'{"text": "x y"}\n{"vector": [1, 0], "text": "z", "vectors": {"a": [2], "b": [1, 2]}}\n{"vector": '
        b'[0, 3], "text": null}\n',
    ],
    "text/csv": [
        b'id,text,label\r\na,"x, ""y""\r\nz",sport\r\n,\xc3\xa9,\r\n\r\n',
        b"text;more\nx;y\n",
        b'text,labels,not,vote:r,weight\nx,a;b,c,"{""a"": 1}",2\ny,[],,,\n',
    ],
    "text/tab-separated-values": [b'text\tlabel\nx\t"a\tb"\ny\t\n'],
    XLSX: [
        workbook({"S": [["id", "text", "label"], ["a", "x y", "sport"], [None, "\u00e9", None]], "T": []}),
        workbook({"S": [["text", "labels", "vote:r", "weight", "d"], [1, "a;b", '{"a": 1}', 2, (45292, DATE)]]}),
    ],
    "application/vnd.apache.parquet": [
        parquet({"id": ["a", None], "text": ["x y", "\u00e9"], "label": ["sport", ""]}),
        parquet({"text": ["x", "", "y"], "label": [3.0, None, -2.0]}),
        parquet({"text": ["x", "y"], "labels": [["a", "b"], None], "vote:r": ["a", None], "weight": [0.5, None]}),
    ],
    "application/vnd.apache.arrow.stream": [
        arrow_stream({"id": [7, 8], "text": ["x y", "\u00e9"], "label": ["sport", None]}),
        arrow_file({"text": pa.array(["x", "", "x"]).dictionary_encode(), "label": [3, None, -2]}),
        arrow_stream({"text": ["x", "y"], "labels": [["a", "b"], None], "vote:r": ["a", None]}),
    ],
    "text/x-svmlight": [b"1 1:0.5 9:2 # words\n0 4:1e-3\n-1\n"],
    "application/x-npz": [
        npz({"indptr": [0, 2, 3], "indices": [0, 7, 3], "data": [1.0, 2.0, 3.0], "shape": [2, 9], "labels": ["x", ""]}),
        npz({"X": np.eye(3, dtype=np.float32), "ids": ["a", "b", "c"]}),
        npz({"X": np.eye(3), "ids": [7, 8, 9], "labels": [1.0, np.nan, -2.0]}),
        npz(
            {
                "X": np.eye(2),
                "indicators": [[1, 0], [1, 1]],
                "classes": ["a", "b"],
                "labeled": [True, False],
                "weights": [1, 2.5],
            }
        ),
        npz({"X": np.eye(3, dtype=np.float32), "text": ["a b", "", "c"], "labels": ["x", "", "y"]}),
        npz({"indptr": [0, 2, 3], "indices": [0, 7, 3], "data": [1.0, 2.0, 3.0], "shape": [2, 9], "X": np.eye(2)}),
    ],
    "application/x-npy": [as_npy(np.eye(3)), as_npy(np.ones((2, 3), np.int8, order="F"))],
    "application/zip": [zip_of({"a/x.txt": b"some text", "unlabeled/y.txt": b"", "z": b"top"})],
    "application/x-tar": [tar_of({"a/x.txt": b"some text", "y": b""}), tar_of({f"b/{'n' * 100}": b"x"})],
    "application/gzip": [gzip.compress(tar_of({"a/x.txt": b"some text", "y": b""}), mtime=0)],
    "multipart/form-data": [
        b'--x\r\nContent-Disposition: form-data; name="file"; '
        b'filename="a.csv"\r\n\r\ntext,label\r\na,b\r\n\r\n--x--\r\n',
        b'--x\r\nContent-Type: application/x-ndjson\r\nContent-Disposition: form-data; name="f"; '
        b'filename=""\r\n\r\n{"text": "a"}\n\r\n--x--',
    ],
}
