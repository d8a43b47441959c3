"""Uploads of tables over HTTP: the same dataset as of JSON, and the dataset's description of the table."""

import io
from typing import Any

import httpx
import numpy as np
import scipy.sparse

from tests.app.codecs.encodings import as_npy
from tests.app.conftest import NDJSON, Gateway, problem_of

TABLE = 'ticket,body,topic,age\nd1,"late, again",sport,9\nd2,vote,politics,8\nd3,cup,,7\n'
LINES = (
    '{"id":"d1","text":"late, '
    'again","label":"sport"}\n{"id":"d2","text":"vote","label":"politics"}\n{"id":"d3","text":"cup"}\n'
)
COLUMNS = {"text": "body", "label": "topic", "id": "ticket"}


def test_a_table_gives_the_dataset_of_its_lines(gateway: Gateway) -> None:
    query = COLUMNS | {"name": "t", "extra": "ignore"}
    of_table = gateway.client.post("/v1/datasets", content=TABLE, params=query, headers={"content-type": "text/csv"})
    assert of_table.status_code == 201, of_table.text
    for media_type in (NDJSON, "application/jsonl", "application/ndjson"):
        of_lines = gateway.client.post("/v1/datasets", content=LINES, headers={"content-type": media_type})
        assert of_lines.json()["sha256"] == of_table.json()["sha256"]
    assert of_table.json()["fields"] == []


def test_what_is_wrong_names_line_and_remedy(gateway: Gateway) -> None:
    answer = gateway.client.post("/v1/datasets", content=TABLE, headers={"content-type": "text/csv"})
    assert "say which column it is by ?text=NAME" in problem_of(answer, 422)["detail"]
    assert gateway.kept() == []


def test_zeros_and_ones_of_svmlight_are_pointed_out(gateway: Gateway) -> None:
    def warnings(body: str) -> list[str]:
        made = gateway.client.post("/v1/datasets", content=body, headers={"content-type": "text/x-svmlight"}).json()
        return [warning for warning in made["warnings"] if "0 is read as unlabeled" in warning]

    assert warnings("1 1:1\n0 2:1\n")
    assert not warnings("1 1:1\n0 2:1\n-1 2:1\n")


def form(gateway: Gateway, *files: tuple[str, bytes, str]) -> httpx.Response:
    return gateway.client.post("/v1/datasets", files=[("file", file) for file in files])


def test_one_file_of_a_form(gateway: Gateway) -> None:
    wanted = gateway.upload([{"text": "a, b", "label": "x"}, {"text": "c"}])["sha256"]
    table, lines = b'text,label\n"a, b",x\nc,\n', b'{"text": "a, b", "label": "x"}\n{"text": "c"}\n'
    for file in (
        ("t.csv", table, "text/csv"),
        ("t.CSV", table, "application/octet-stream"),
        ("t.jsonl", lines, ""),
        ("t", lines, NDJSON),
    ):
        answer = form(gateway, file)
        assert answer.status_code == 201, answer.text
        assert answer.json()["sha256"] == wanted


def test_forms_that_are_refused(gateway: Gateway) -> None:
    table = ("t.csv", b"text\na\n", "text/csv")
    assert "a second file; send one" in problem_of(form(gateway, table, table), 422)["detail"]
    assert "the file 't.xls'" in problem_of(form(gateway, ("t.xls", b"PK", "application/octet-stream")), 415)["detail"]
    answer = gateway.client.post("/v1/datasets", files={"file": table}, data={"text": "body"})
    assert (
        "the form has the field 'text' beside the file; what it says goes into the query"
        in problem_of(answer, 422)["detail"]
    )
    bare = gateway.client.post("/v1/datasets", content=b"--x--", headers={"content-type": "multipart/form-data"})
    assert "without a boundary" in problem_of(bare, 415)["detail"]


def test_types_that_are_not_read_say_what_to_do(gateway: Gateway) -> None:
    for media_type, advice in {
        "application/x-www-form-urlencoded": "add -H 'Content-Type: application/json'",
        "application/vnd.ms-excel": "save the table as .xlsx or CSV",
        "": "say what it is, as by -H 'Content-Type: text/csv'",
        "text/plain": "a table text/csv",
    }.items():
        answer = gateway.client.post(
            "/v1/datasets", content=b"x", headers={"content-type": media_type} if media_type else {}
        )
        assert advice in problem_of(answer, 415)["detail"]


def test_a_matrix_in_any_order_is_the_same_dataset(gateway: Gateway) -> None:
    matrix: Any = scipy.sparse.random_array((60, 30), density=0.2, format="csr", rng=0, dtype=np.float32)
    twice: Any = scipy.sparse.coo_array(
        (np.tile(matrix.data / 2, 2), (np.tile(matrix.tocoo().row, 2), np.tile(matrix.tocoo().col, 2))), matrix.shape
    )
    bodies = [
        ("application/x-npy", as_npy(matrix.toarray())),
        ("application/x-npy", as_npy(np.asfortranarray(matrix.toarray()))),
    ]
    for each in (matrix, matrix.tocsc(), matrix.tocoo(), scipy.sparse.coo_matrix(matrix), twice):
        file = io.BytesIO()
        scipy.sparse.save_npz(file, each)
        bodies.append(("application/x-npz", file.getvalue()))
    made = [
        gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type})
        for media_type, body in bodies
    ]
    assert {answer.status_code for answer in made} == {201}, [answer.text for answer in made]
    assert len({answer.json()["sha256"] for answer in made}) == 1


def test_matrices_that_are_refused(gateway: Gateway) -> None:
    matrix: Any = scipy.sparse.csc_array(np.eye(3))

    def refused(**arrays: Any) -> str:
        file = io.BytesIO()
        np.savez(file, **arrays)
        answer = gateway.client.post(
            "/v1/datasets", content=file.getvalue(), headers={"content-type": "application/x-npz"}
        )
        return str(problem_of(answer, 422)["detail"])

    csc = {
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "data": matrix.data,
        "shape": matrix.shape,
        "format": np.array("csc"),
    }
    assert "indices: must lie from 0 to 2" in refused(**csc | {"indices": np.array([0, 1, 3])})
    assert "indptr: ends with 2, but there are 3 values" in refused(**csc | {"indptr": np.array([0, 1, 2, 2])})
    assert "indptr: has length 3, not 4" in refused(**csc | {"indptr": np.array([0, 1, 3])})
    assert "'dia' format; send it by rows, as of matrix.tocsr()" in refused(**csc | {"format": np.array("dia")})
    coo = {"row": np.arange(3), "col": np.arange(3), "data": np.ones(3), "shape": [3, 3]}
    assert "col: must lie from 0 to 2" in refused(**coo | {"col": np.array([0, -1, 2])})
    assert "row: has length 2, not 3" in refused(**coo | {"row": np.arange(2)})
    assert "indptr: must be left out: row, col, data, shape" in refused(**coo | {"indptr": np.arange(4)})
    assert "labels: is an array of Python objects, which are never unpickled; send labels.astype(str)" in refused(
        X=np.eye(2), labels=np.array(["a", None], object)
    )
    assert (
        "application/x-npz"
        in problem_of(
            gateway.client.post(
                "/v1/datasets", content=b"PK\x03\x04....", headers={"content-type": "application/x-npy"}
            ),
            422,
        )["detail"]
    )


def test_labels_with_gaps_and_ids_of_numbers(gateway: Gateway) -> None:
    """As a table of pandas has them: labels are floats where some are missing, ids are integers."""
    wanted = gateway.upload([{"indices": [0], "label": 2, "id": "7"}, {"indices": [1], "id": "8"}])["sha256"]
    assert (
        gateway.upload([{"indices": [0], "label": 2.0, "id": 7}, {"indices": [1], "label": None, "id": 8}])["sha256"]
        == wanted
    )
    file = io.BytesIO()
    np.savez(file, X=np.eye(2), labels=np.array([2, np.nan]), ids=np.array([7, 8]))
    answer = gateway.client.post("/v1/datasets", content=file.getvalue(), headers={"content-type": "application/x-npz"})
    assert answer.json()["sha256"] == wanted
