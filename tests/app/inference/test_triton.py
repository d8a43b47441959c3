"""Triton's own client with its defaults: no type of the body, tensors in binary form behind the JSON."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton

from tests.app.conftest import Gateway, publish, text_model


@pytest.fixture
def client(gateway: Gateway) -> Iterator[triton.InferenceServerClient]:
    publish(gateway.store)
    publish(gateway.store, "texts", model=text_model())
    client = triton.InferenceServerClient(f"127.0.0.1:{gateway.port}")
    yield client
    client.close()


def tensor(name: str, array: np.ndarray[Any, Any], datatype: str, *, binary: bool) -> triton.InferInput:
    found = triton.InferInput(name, list(array.shape), datatype)
    found.set_data_from_numpy(array, binary_data=binary)
    return found


def test_health_and_metadata(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("news")
    assert [each["name"] for each in client.get_model_metadata("news")["inputs"]] == ["indptr", "indices", "data", "X"]


@pytest.mark.parametrize("binary", [True, False])
def test_the_same_answers_as_predict(gateway: Gateway, client: triton.InferenceServerClient, binary: bool) -> None:
    matrix = np.array([[1, 0, 0], [0, 2, 0.5], [0, 0, 0]], np.float32)
    documents = [{"indices": [0]}, {"indices": [1, 2], "values": [2, 0.5]}, {"indices": []}]
    expected = gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()
    sparse = [
        tensor("indptr", np.array([0, 1, 3, 3]), "INT64", binary=binary),
        tensor("indices", np.array([0, 1, 2], np.int32), "INT32", binary=binary),
        tensor("data", np.array([1, 2, 0.5]), "FP64", binary=binary),
    ]
    for inputs in ([tensor("X", matrix, "FP32", binary=binary)], sparse):
        for compressed in (None, "gzip"):
            answer = client.infer("news", inputs, request_compression_algorithm=compressed)
            assert answer.as_numpy("labels").tolist() == expected["labels"]
            assert answer.as_numpy("scores").tolist() == expected["scores"]


@pytest.mark.parametrize("binary", [True, False])
def test_texts(gateway: Gateway, client: triton.InferenceServerClient, binary: bool) -> None:
    texts = ["late vote vote", "go\u00e9al", ""]
    expected = gateway.client.post(
        "/v1/models/texts/predict", json={"documents": [{"text": text} for text in texts]}
    ).json()
    inputs = [tensor("text", np.array(texts, dtype=object), "BYTES", binary=binary)]
    answer = client.infer("texts", inputs, outputs=[triton.InferRequestedOutput("labels")])
    assert answer.as_numpy("labels").tolist() == expected["labels"]


def posted(gateway: Gateway, inputs: list[dict[str, Any]], data: bytes, length: str | None = None) -> Any:
    text = json.dumps({"inputs": inputs}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)) if length is None else length}
    return gateway.client.post("/v2/models/news/infer", content=text + data, headers=headers)


def dense(size: Any, datatype: str = "FP32") -> dict[str, Any]:
    return {"name": "X", "datatype": datatype, "shape": [1, 2], "parameters": {"binary_data_size": size}}


def test_what_cannot_be_used_is_named(gateway: Gateway, client: triton.InferenceServerClient) -> None:
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}}
    for inputs, data, length, detail in (
        ([dense(8)], bytes(7), None, "binary data of 8 bytes are announced, but 7 came behind the JSON"),
        ([dense(-1)], b"", None, "X: binary_data_size must be a number of bytes"),
        ([dense(7)], bytes(7), None, "X: 7 bytes are no FP32 numbers"),
        ([dense(12)], bytes(12), None, "X: 3 numbers do not fill the shape [1, 2]"),
        ([dense(8)], bytes(8), "x", "must be the number of bytes of the JSON"),
        ([dense(8)], bytes(8), "9999", "must be the number of bytes of the JSON"),
        ([dense(8)], bytes(8), "9" * 5000, "must be the number of bytes of the JSON"),
        ([dense(8)], np.array([np.nan, 1], np.float32).tobytes(), None, "is not a finite number"),
        ([text], b"\x09\0\0\0ab", None, "text: the binary data end within string 0"),
        ([text], b"\x02\0\0\0\xff\xff", None, "text: string 0 is not UTF-8"),
    ):
        answer = posted(gateway, inputs, data, length)
        assert answer.status_code == 400, answer.text
        assert detail in answer.json()["error"], (inputs, data)
