"""Uploads in all formats and encodings: equal documents give equal datasets."""

import gzip
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
import pytest
import scipy.sparse

from storage.names import new_id
from tests.app.codecs.encodings import ENCODERS, as_ndjson, as_npz, dense_of, npz, scipy_npz
from tests.app.conftest import NDJSON, TWO_CLASSES, Gateway, problem_of
from tests.stores import no_file_beyond
from tests.waiting import HANG, until

NUMBERED: list[dict[str, Any]] = [
    {"indices": [0, 7, 3], "values": [0.5, -2.0, 1.25], "label": 2},
    {"indices": [], "values": []},
    {"indices": [1, 7], "values": [1e-3, 3.0], "label": -1},
    {"indices": [4], "values": [1.0], "label": 2},
]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_all_formats_give_the_same_dataset(gateway: Gateway, encoding: str) -> None:
    made = []
    for media_type, encode in ENCODERS.items():
        body = encode(NUMBERED)
        headers = {"content-type": media_type}
        if encoding == "gzip":
            body, headers["content-encoding"] = gzip.compress(body), "gzip"
        answer = gateway.client.post("/v1/datasets", content=body, headers=headers)
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"] == f"/v1/datasets/{answer.json()['id']}"
        made.append(answer.json())
    assert len({dataset["sha256"] for dataset in made}) == 1
    assert len({dataset["id"] for dataset in made}) == len(ENCODERS)
    first = made[0]
    assert (first["n_documents"], first["n_labeled"], first["n_features"], first["n_nonzeros"]) == (4, 3, 8, 6)
    assert first["classes"] == {"-1": 1, "2": 2}
    assert first["warnings"][0] == "1 document without any nonzero value"


def test_every_cut_of_the_stream_gives_the_same_documents(gateway: Gateway) -> None:
    expected = gateway.upload(TWO_CLASSES)["sha256"]
    body = as_ndjson(TWO_CLASSES)

    def bytewise() -> Iterator[bytes]:
        for byte in body:
            yield bytes([byte])

    answer = gateway.client.post("/v1/datasets", content=bytewise(), headers={"content-type": NDJSON})
    assert answer.json()["sha256"] == expected


def test_braces_quotes_and_escapes_in_texts(gateway: Gateway) -> None:
    texts = ["}", "{", '"', "\\", '\\"}', "{}", '"}{"', "ü\u2028", '\\\\"']
    documents = [{"id": f"{number}{text}", "indices": [number], "label": text} for number, text in enumerate(texts)]
    made = [
        gateway.client.post("/v1/datasets", content=ENCODERS[kind](documents), headers={"content-type": kind})
        for kind in (NDJSON, "application/json")
    ]
    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].json()["sha256"] == made[1].json()["sha256"]
    assert set(made[1].json()["classes"]) == set(texts)


def test_what_scipy_writes_is_read(gateway: Gateway) -> None:
    dense = np.random.default_rng(0).random((50, 30))
    matrix = scipy.sparse.csr_array(dense * (dense < 0.2))
    answer = gateway.client.post(
        "/v1/datasets", content=scipy_npz(matrix), headers={"content-type": "application/x-npz"}
    )
    assert answer.status_code == 201, answer.text
    assert (answer.json()["n_documents"], answer.json()["n_nonzeros"], answer.json()["n_features"]) == (
        50,
        matrix.nnz,
        30,
    )


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8])
def test_a_dense_matrix_is_the_same_dataset(
    gateway: Gateway, dtype: Any, order: Literal["C", "F"], compressed: bool
) -> None:
    documents = [
        document | {"values": np.round(document["values"]).tolist()} for document in NUMBERED[:2] + NUMBERED[3:]
    ]
    bodies = as_npz(documents), npz(dense_of(documents, dtype, order), compressed=compressed)
    answers = [
        gateway.client.post("/v1/datasets", content=body, headers={"content-type": "application/x-npz"})
        for body in bodies
    ]
    assert [answer.status_code for answer in answers] == [201, 201], answers[1].text
    assert answers[0].json()["sha256"] == answers[1].json()["sha256"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_dense_matrix_of_many_slices(gateway: Gateway, order: Literal["C", "F"], rng: np.random.Generator) -> None:
    """More numbers than are held at once, zeros of both signs among them, and full rows."""
    matrix = rng.standard_normal((4001, 300)) * (rng.random((4001, 300)) < np.linspace(0, 1.2, 4001)[:, None])
    bodies = scipy_npz(scipy.sparse.csr_array(matrix)), npz({"X": np.asarray(matrix, order=order)})
    made = [
        gateway.client.post("/v1/datasets", content=body, headers={"content-type": "application/x-npz"}).json()
        for body in bodies
    ]
    assert made[1]["n_nonzeros"] == np.count_nonzero(np.float32(matrix))
    assert made[0]["sha256"] == made[1]["sha256"]


@pytest.mark.parametrize(
    ("heading", "file", "media_type", "figures"),
    [
        ("Dense vectors", "dense.npz", "application/x-npz", (4, 8, 32)),
        ("Sparse vectors", "sparse.npz", "application/x-npz", (4, 100, 40)),
    ],
)
def test_the_examples_of_the_page_on_documents(
    gateway: Gateway,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    heading: str,
    file: str,
    media_type: str,
    figures: Any,
) -> None:
    section = (repository / "docs/documents.md").read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    monkeypatch.chdir(tmp_path)
    exec(section.split("```python\n")[1].split("```")[0], {})
    answer = gateway.client.post(
        "/v1/datasets", content=Path(file).read_bytes(), headers={"content-type": media_type}
    ).json()
    assert answer["classes"] == {"politics": 1, "sport": 1}
    assert (answer["n_documents"], answer["n_features"], answer["n_nonzeros"]) == figures


def test_svmlight_as_people_write_it(gateway: Gateway) -> None:
    text = b"# a comment\n+1 1:.5 3:1e0 # tail\r\n\n-1 qid:3 2:+2 \n0\t4:1.\n2 1:1"
    answer = gateway.client.post("/v1/datasets", content=text, headers={"content-type": "text/x-svmlight"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["classes"] == {"-1": 1, "1": 1, "2": 1}
    assert (answer.json()["n_documents"], answer.json()["n_nonzeros"]) == (4, 5)


def test_gzip_of_several_members(gateway: Gateway) -> None:
    half = as_ndjson(TWO_CLASSES[:1]), as_ndjson(TWO_CLASSES[1:])
    body = b"".join(map(gzip.compress, half))
    answer = gateway.client.post(
        "/v1/datasets", content=body, headers={"content-type": NDJSON, "content-encoding": "gzip"}
    )
    assert answer.json()["n_documents"] == 3


def test_out_of_order_indices_and_left_out_values(gateway: Gateway) -> None:
    given = gateway.upload([{"indices": [5, 1]}])
    assert given["sha256"] == gateway.upload([{"indices": [1, 5], "values": [1, 1]}])["sha256"]


def test_list_show_delete(gateway: Gateway) -> None:
    ids = [gateway.upload(TWO_CLASSES, name=f"set{number}")["id"] for number in range(3)]
    gateway.store.create(f"datasets/{new_id('ds')}/indptr.npy", b"an upload under way")
    page = gateway.client.get("/v1/datasets", params={"limit": 2}).json()
    assert [dataset["id"] for dataset in page["datasets"]] == [ids[2], ids[1]]
    rest = gateway.client.get("/v1/datasets", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [dataset["id"] for dataset in rest["datasets"]] == [ids[0]]
    assert rest["next_cursor"] is None
    assert gateway.client.get(f"/v1/datasets/{ids[0]}").json()["name"] == "set0"
    assert gateway.client.delete(f"/v1/datasets/{ids[0]}").status_code == 204
    problem_of(gateway.client.get(f"/v1/datasets/{ids[0]}"), 404)


def test_a_relabeled_dataset_may_have_a_name_of_its_own(gateway: Gateway) -> None:
    path = f"/v1/datasets/{gateway.upload(TWO_CLASSES, name='first')['id']}/labels"
    body = {"labels": {"c": "yes"}}
    assert gateway.client.put(path, json=body).json()["name"] == "first"
    assert gateway.client.put(path, json=body, params={"name": "second"}).json()["name"] == "second"
    with gateway.unchanged():
        assert (
            problem_of(gateway.client.put(path, json=body, params={"name": "a\tb"}), 422)["type"]
            == "/problems/invalid-name"
        )


def test_a_client_that_leaves_leaves_nothing(gateway: Gateway) -> None:
    before = gateway.kept()
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        head = (
            "POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/x-ndjson\r\nContent-Length: 100000000\r\n\r\n"
        )
        connection.sendall(head.encode() + as_ndjson(TWO_CLASSES) * 20_000)
        until(lambda: gateway.kept() != before)
    until(lambda: gateway.kept() == before)
    assert gateway.client.get("/v1/datasets").json()["datasets"] == []


@pytest.mark.parametrize("media_type", ["application/x-ndjson", "application/json", "text/x-svmlight"])
def test_memory_stays_flat(gateway: Gateway, media_type: str) -> None:
    block = ENCODERS[media_type]([{"indices": list(range(0, 760, 10)), "values": [0.5] * 76, "label": 1}] * 500)
    if media_type == "application/json":
        block = block[len(b'{"documents": [') : -2]
    n_blocks = 80_000_000 // len(block)

    def body() -> Iterator[bytes]:
        if media_type != "application/json":
            yield from (block for _ in range(n_blocks))
            return
        yield b'{"documents": ['
        for number in range(n_blocks):
            yield (b"," if number else b"") + block
        yield b"]}"

    gateway.upload(TWO_CLASSES)
    with peak_growth() as peak:
        answer = gateway.client.post("/v1/datasets", content=body(), headers={"content-type": media_type}, timeout=HANG)
    assert answer.json()["n_documents"] == 500 * n_blocks
    assert peak.bytes < 64 << 20


def test_memory_stays_flat_for_a_large_npz(gateway: Gateway) -> None:
    n = 150_000
    arrays = {
        "indptr": np.arange(n + 1, dtype=np.int64) * 76,
        "indices": np.tile(np.arange(76, dtype=np.int32) * 9, n),
        "data": np.full(n * 76, 0.5, np.float32),
        "shape": np.array([n, 700]),
        "labels": np.array(["", "spam", "ham"] * (n // 3)),
    }
    body = npz(arrays)
    pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
    with peak_growth() as peak:
        answer = gateway.client.post(
            "/v1/datasets", content=pieces, headers={"content-type": "application/x-npz"}, timeout=HANG
        )
    assert answer.json()["n_nonzeros"] == n * 76
    assert answer.json()["classes"] == {"ham": n // 3, "spam": n // 3}
    assert peak.bytes < 64 << 20


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressed", [False, True])
def test_memory_stays_flat_for_a_dense_matrix(gateway: Gateway, order: Literal["C", "F"], compressed: bool) -> None:
    matrix = np.zeros((100_000, 250), np.float32, order)
    matrix[:, ::5] = 0.5
    body = npz({"X": matrix}, compressed=compressed)
    pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
    with peak_growth() as peak:
        answer = gateway.client.post(
            "/v1/datasets", content=pieces, headers={"content-type": "application/x-npz"}, timeout=HANG
        )
    assert (answer.json()["n_nonzeros"], answer.json()["n_features"]) == (100_000 * 50, 250)
    assert peak.bytes < 64 << 20


class peak_growth:  # noqa: N801 - reads as a word
    """The most by which this process' memory grows in the block."""

    def __enter__(self) -> "peak_growth":
        self._process, self._done = psutil.Process(), threading.Event()
        self._start = self._top = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self._top = max(self._top, self._process.memory_info().rss)

    @property
    def bytes(self) -> int:
        return self._top - self._start


@pytest.mark.parametrize("media_type", ENCODERS)
@pytest.mark.parametrize("room", [0, 100, 1000, 20_000])
def test_a_full_disk_is_reported_and_nothing_is_kept(gateway: Gateway, media_type: str, room: int) -> None:
    documents = [
        {"id": f"document {number}", "indices": [0, number % 50 + 1], "values": [1.0, 0.5]} for number in range(5000)
    ]
    body, headers = ENCODERS[media_type](documents), {"content-type": media_type}
    with gateway.unchanged():
        with no_file_beyond(room):
            problem = problem_of(gateway.client.post("/v1/datasets", content=body, headers=headers), 507)
        assert problem["type"] == "/problems/insufficient-storage"
    assert gateway.client.post("/v1/datasets", content=body, headers=headers).status_code == 201


def test_labels_that_a_full_disk_does_not_take(gateway: Gateway) -> None:
    path = f"/v1/datasets/{gateway.upload(TWO_CLASSES)['id']}/labels"
    with gateway.unchanged(), no_file_beyond(0):
        problem_of(gateway.client.put(path, json={"labels": {"c": "yes"}}), 507)
