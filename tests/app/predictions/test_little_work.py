"""Which predictions the event loop computes, and which a thread."""

import gzip
import threading

import numpy as np
import pytest

from app.predictions.service import fits_event_loop
from core.documents.rows import SparseRows
from core.kernels.function import Kernel
from core.models.kernel import KernelModel
from core.models.model import LinearModel
from tests.app.codecs.encodings import npz
from tests.app.conftest import Gateway, Start, problem_of, publish
from tests.calls import noted

PREDICT, INFER = "/v1/models/news/predict", "/v2/models/news/infer"
SVMLIGHT, NPZ = "text/x-svmlight", "application/x-npz"


def kernel_model(n_support: int) -> KernelModel:
    support = SparseRows(np.arange(n_support + 1), np.zeros(n_support, np.uint32), np.ones(n_support, np.float32), 1)
    return KernelModel(
        ["a", "b"], 1, np.zeros(1, np.uint32), support, np.ones((n_support, 1)), np.zeros(1), Kernel("rbf", 1.0)
    )


@pytest.fixture
def scored(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which documents were scored."""
    publish(gateway.store)
    return noted(monkeypatch, LinearModel, "scores_and_unseen", lambda *_: threading.current_thread().name)


@pytest.mark.parametrize(
    ("body", "headers", "aside"),
    [
        (b"0 1:1\n" * 10, {"Content-Type": SVMLIGHT}, False),
        (b"0 1:1\n" * 8000, {"Content-Type": SVMLIGHT}, True),
        (b"0\n" * 10_000, {"Content-Type": SVMLIGHT}, True),
        (gzip.compress(b"0 1:1\n"), {"Content-Type": SVMLIGHT, "Content-Encoding": "gzip"}, True),
        (npz({"X": np.zeros((100_000, 1), np.int8)}, compressed=True), {"Content-Type": NPZ}, True),
    ],
    ids=["few", "many", "empty", "gzip", "npz"],
)
def test_what_is_much_work_is_not_done_on_the_event_loop(
    gateway: Gateway, scored: list[str], body: bytes, headers: dict[str, str], aside: bool
) -> None:
    assert len(body) < 64 << 10
    assert gateway.client.post(PREDICT, content=body, headers=headers).status_code == 200
    assert {name.startswith("predict") for name in scored} == {aside}


def test_nor_are_many_documents_in_tensors(gateway: Gateway, scored: list[str]) -> None:
    for n_rows, aside in ((10, False), (20_000, True)):
        scored.clear()
        lengths = {"indptr": n_rows + 1, "indices": 0, "data": 0}
        inputs = [
            {"name": name, "datatype": "INT64", "shape": [length], "data": [0] * length}
            for name, length in lengths.items()
        ]
        assert gateway.client.post(INFER, json={"inputs": inputs}).status_code == 200
        assert {name.startswith("predict") for name in scored} == {aside}


def test_work_outside_of_the_interpreter_has_threads_of_its_own(
    gateway: Gateway, scored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinearModel, "row_work", 10**6)
    assert gateway.client.post(PREDICT, content=b"0 1:1\n" * 10, headers={"Content-Type": SVMLIGHT}).is_success
    assert scored[0].startswith("compute")


def test_what_a_kernel_model_keeps_counts() -> None:
    assert fits_event_loop(kernel_model(10), 500)
    assert fits_event_loop(kernel_model(10_000), 10)
    assert not fits_event_loop(kernel_model(10_000), 500)


@pytest.mark.usefixtures("version")
def test_documents_without_a_single_feature_are_refused(gateway: Gateway) -> None:
    body = npz({"X": np.zeros((400_000, 0))})
    for path in (PREDICT, "/v1/datasets"):
        answer = gateway.client.post(path, content=body, headers={"Content-Type": NPZ})
        assert problem_of(answer, 422)["detail"] == "X: has 400000 documents without a single feature"
    empty = {"name": "X", "datatype": "FP32", "shape": [60_000, 0], "data": []}
    answer = gateway.client.post(INFER, json={"inputs": [empty]})
    assert (answer.status_code, answer.json()) == (400, {"error": "X: has 60000 documents without a single feature"})


@pytest.mark.usefixtures("version")
def test_an_output_is_given_once(gateway: Gateway) -> None:
    inputs = [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1]}]
    answer = gateway.client.post(
        INFER, json={"inputs": inputs, "outputs": [{"name": "scores"}, {"name": "labels"}, {"name": "scores"}]}
    )
    assert (answer.status_code, answer.json()) == (400, {"error": "outputs: each output may be requested once"})


def test_so_many_documents_in_one_prediction(start: Start) -> None:
    gateway = start(max_predicted_documents=3)
    publish(gateway.store)
    for n_rows, status in ((3, 200), (4, 413)):
        for body, media_type in ((b"0 1:1\n" * n_rows, SVMLIGHT), (npz({"X": np.ones((n_rows, 1))}), NPZ)):
            assert (
                gateway.client.post(PREDICT, content=body, headers={"Content-Type": media_type}).status_code == status
            )
        inputs = [{"name": "X", "datatype": "FP32", "shape": [n_rows, 1], "data": [1] * n_rows}]
        assert gateway.client.post(INFER, json={"inputs": inputs}).status_code == status
    assert (
        gateway.client.post("/v1/datasets", content=b"0 1:1\n" * 4, headers={"Content-Type": SVMLIGHT}).status_code
        == 201
    )
