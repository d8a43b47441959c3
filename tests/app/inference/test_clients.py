"""Clients of the Open Inference Protocol: requests of those too heavy to be installed here, and Triton's own."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton

from tests.app.conftest import Gateway, publish, text_model

MATRIX = np.array([[1, 0, 0], [0, 2, 0.5], [0, 0, 0]])
TEXTS = ["late vote vote", "go\u00e9al", ""]
CLIENT = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "python-httpx/0.28.1"}
BINARY = CLIENT | {"content-type": "application/octet-stream"}
JSON = {
    "accept": "*/*",
    "accept-encoding": "gzip, deflate, br",
    "user-agent": "python-requests/2.34.2",
    "content-type": "application/json",
}


@pytest.fixture
def expected(gateway: Gateway) -> dict[str, Any]:
    """Answers of the service's own call, by model."""
    publish(gateway.store)
    publish(gateway.store, "texts", model=text_model())
    vectors = [{"indices": [0]}, {"indices": [1, 2], "values": [2, 0.5]}, {"indices": []}]
    bodies = {"news": vectors, "texts": [{"text": text} for text in TEXTS]}
    return {
        name: gateway.client.post(f"/v1/models/{name}/predict", json={"documents": documents}).json()
        for name, documents in bodies.items()
    }


def inferred(gateway: Gateway, model: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    answer = gateway.client.post(f"/v2/models/{model}/infer", content=body, headers=headers)
    assert answer.status_code == 200, (answer.text, body)
    return {
        output["name"]: np.array(output["data"]).reshape(output["shape"]).tolist()
        for output in answer.json()["outputs"]
    }


def test_kserve(gateway: Gateway, expected: dict[str, Any]) -> None:
    """``InferenceRESTClient.infer`` of an ``InferRequest`` with data that are binary by default."""
    begin = '{"id":"1e3cce44-d3ee-47e3-82b9-616f9cd9ada0","model_name":"%s","inputs":['
    for model, inputs, data in (
        (
            "news",
            '{"name":"X","shape":[3,3],"datatype":"FP32","parameters":{"binary_data_size":36}}',
            MATRIX.astype("<f4").tobytes(),
        ),
        (
            "news",
            '{"name":"X","shape":[3,3],"datatype":"FP16","parameters":{"binary_data_size":18}}',
            MATRIX.astype("<f2").tobytes(),
        ),
        (
            "texts",
            '{"name":"text","shape":[3],"datatype":"BYTES","parameters":{"binary_data_size":32}}',
            b"\x0e\0\0\0late vote vote\x06\0\0\0go\xc3\xa9al\0\0\0\0",
        ),
    ):
        text = (
            begin % model
            + inputs
            + '],"outputs":[{"name":"labels"},{"name":"scores","parameters":{"binary_data":true}}]}'
        ).encode()
        found = inferred(gateway, model, text + data, BINARY | {"inference-header-content-length": str(len(text))})
        assert found == {name: expected[model][name] for name in ("labels", "scores")}
    text = (
        begin % "texts" + '{"name":"text","shape":[3],"datatype":"BYTES","data":["late vote vote","goéal",""]}]}'
    ).encode()
    assert (
        inferred(gateway, "texts", text, CLIENT | {"content-type": "application/json"})["labels"]
        == expected["texts"]["labels"]
    )
    ready = {
        name: gateway.client.get(f"/v2/models/{name}/ready", headers=CLIENT).is_success for name in ("news", "nope")
    }
    assert ready == {"news": True, "nope": False}


def test_mlserver(gateway: Gateway, expected: dict[str, Any]) -> None:
    """Requests by its codecs: codecs of a whole request give the one tensor a name of their own, codecs of arrays send
    columns.
    """
    matrix = (
        '"shape": [3, 3], "datatype": "FP32", "parameters": {"content_type": "np"}, "data": [1.0, 0.0, 0.0, '
        "0.0, 2.0, 0.5, 0.0, 0.0, 0.0]}]}"
    )
    column = '{"name": "%s", "shape": [%d, 1], "datatype": "%s", "parameters": {"content_type": "np"}, "data": %s}'
    csr = ", ".join(
        column % each
        for each in (
            ("indptr", 4, "INT64", [0, 1, 3, 3]),
            ("indices", 3, "INT64", [0, 1, 2]),
            ("data", 3, "FP32", [1.0, 2.0, 0.5]),
        )
    )
    strings = '"shape": [3, 1], "datatype": "BYTES", "parameters": {"content_type": "%s"}, "data": [%s]}]}'
    for model, text in (
        ("news", '{"inputs": [{"name": "X", ' + matrix),
        ("news", '{"parameters": {"content_type": "np"}, "inputs": [{"name": "input-1", ' + matrix),
        ("news", '{"inputs": [' + csr + "]}"),
        (
            "texts",
            '{"parameters": {"content_type": "str"}, "inputs": [{"name": "input-1", '
            + strings % ("str", '"late vote vote", "go\\u00e9al", ""'),
        ),
        ("texts", '{"inputs": [{"name": "text", ' + strings % ("base64", '"bGF0ZSB2b3RlIHZvdGU=", "Z2/DqWFs", ""')),
    ):
        found = inferred(gateway, model, text.encode(), JSON)
        assert found == {name: expected[model][name] for name in ("labels", "scores")}
    broken = '{"inputs": [{"name": "text", ' + strings % ("base64", '"late vote", "", ""')
    answer = gateway.client.post("/v2/models/texts/infer", content=broken.encode(), headers=JSON)
    assert answer.json() == {"error": "text: its content_type is base64, but a string is not UTF-8 text in base64"}


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
