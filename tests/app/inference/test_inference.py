"""The Open Inference Protocol, by a client that was generated from its published description."""

from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from open_inference.openapi.client import OpenInferenceClient
from open_inference.openapi.core.api_error import ApiError
from open_inference.openapi.types import InferenceRequest

from tests.app.conftest import Gateway, publish
from tests.waiting import HANG


@pytest.fixture
def client(gateway: Gateway) -> Iterator[OpenInferenceClient]:
    publish(gateway.store)
    with httpx.Client(verify=False, timeout=HANG) as http:
        yield OpenInferenceClient(base_url=str(gateway.client.base_url).rstrip("/"), httpx_client=http)


def tensor(name: str, datatype: str, data: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape or [len(data)], "data": data}


def sparse(indptr: list[int], indices: Sequence[float], data: list[float]) -> list[dict[str, Any]]:
    return [tensor("indptr", "INT64", indptr), tensor("indices", "UINT32", [*indices]), tensor("data", "FP32", data)]


def request(**fields: Any) -> InferenceRequest:
    return InferenceRequest.parse_obj(fields)


def data_of(answer: Any) -> dict[str, Any]:
    return {output.name: output.data.__root__ for output in answer.outputs}


SPARSE = sparse([0, 1, 1, 3], [0, 2, 1], [1.0, 5.0, 2.0])


def test_health_and_metadata(client: OpenInferenceClient) -> None:
    client.check_server_liveness()
    client.check_server_readiness()
    client.check_model_readiness("news")
    client.check_model_version_readiness("news", "1")
    assert client.read_server_metadata().name == "halfmoon"
    for metadata in (client.read_model_metadata("news"), client.read_model_version_metadata("news", "1")):
        assert (metadata.name, metadata.versions, metadata.platform) == ("news", ["1"], "halfmoon")
        assert [(each.name, each.datatype, each.shape) for each in metadata.inputs or []] == [
            ("indptr", "INT64", [-1]),
            ("indices", "INT64", [-1]),
            ("data", "FP32", [-1]),
            ("X", "FP32", [-1, -1]),
        ]
        assert [(each.name, each.datatype, each.shape) for each in metadata.outputs or []] == [
            ("labels", "BYTES", [-1]),
            ("scores", "FP64", [-1, 1]),
        ]


def test_the_same_answers_as_predict(gateway: Gateway, client: OpenInferenceClient) -> None:
    documents = [{"indices": [0]}, {"indices": []}, {"indices": [2, 1], "values": [5.0, 2.0]}]
    expected = gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()
    for answer in (
        client.model_infer("news", request=request(id="42", inputs=SPARSE)),
        client.model_version_infer("news", "1", request=request(id="42", inputs=SPARSE)),
    ):
        assert (answer.model_name, answer.model_version, answer.id) == ("news", "1", "42")
        assert data_of(answer) == {"labels": expected["labels"], "scores": [row[0] for row in expected["scores"]]}
        assert [(output.datatype, output.shape) for output in answer.outputs] == [("BYTES", [3]), ("FP64", [3, 1])]


def test_a_dense_matrix_flat_or_in_rows(client: OpenInferenceClient) -> None:
    rows = [[1.0, 0.0, 0.0], [0.0, 2.0, 5.0]]
    nested = client.model_infer("news", request=request(inputs=[tensor("X", "FP32", rows, [2, 3])]))
    flat = client.model_infer("news", request=request(inputs=[tensor("X", "FP64", [*rows[0], *rows[1]], [2, 3])]))
    assert data_of(nested) == data_of(flat) == {"labels": ["no", "yes"], "scores": [-1.0, 2.0]}


def test_only_the_outputs_that_are_wanted(client: OpenInferenceClient) -> None:
    wanted = [{"name": "classes"}, {"name": "labels"}]
    answer = client.model_infer("news", request=request(inputs=SPARSE, outputs=wanted))
    assert data_of(answer) == {"classes": ["no", "yes"], "labels": ["no", "no", "yes"]}


def test_an_alias_and_a_client_that_sends_more_than_we_know(gateway: Gateway, client: OpenInferenceClient) -> None:
    gateway.client.put("/v1/models/news/aliases/live", json={"version": 1}).raise_for_status()
    body = {"inputs": [each | {"new": 1} for each in SPARSE], "parameters": {"a": True}, "more": {}}
    answer = gateway.client.post("/v2/models/news@live/infer", json=body)
    assert answer.json()["model_version"] == "1"
    assert "id" not in answer.json()


UNUSABLE: list[tuple[list[dict[str, Any]], str]] = [
    ([], "inputs: must be indptr, indices and data"),
    (SPARSE[:2], "inputs: must be"),
    ([*SPARSE, SPARSE[0]], "inputs: must be"),
    ([*SPARSE, tensor("X", "FP32", [1.0], [1, 1])], "inputs: indices and vector are of different numbers"),
    ([tensor("X", "BYTES", ["a"], [1, 1])], "X: datatype 'BYTES' is not one of"),
    ([tensor("X", "FP32", [1.0, 2.0], [3, 1])], "X: 2 numbers do not fill the shape [3, 1]"),
    ([tensor("X", "FP32", [1.0, 2.0], [2])], "X: its shape must be of 2 numbers"),
    ([tensor("X", "FP32", [], [-1, -1])], "X: its shape must be of 2 numbers"),
    ([tensor("X", "FP32", [[1.0], [2.0, 3.0]], [2, 1])], "X: data must be FP32 numbers"),
    ([tensor("X", "FP32", [[1.0, 2.0]], [2, 1])], "X: the data are nested in the shape [1, 2], not [2, 1]"),
    (
        [tensor("indptr", "INT64", [[0, 1]], [2]), *SPARSE[1:]],
        "indptr: the data are nested in the shape [1, 2], not [2]",
    ),
    ([tensor("X", "FP32", ["1"], [1, 1])], "X: data must be FP32 numbers"),
    ([tensor("X", "FP32", [1e39], [1, 1])], "document number 1: values: the value of index 0 is not a finite number"),
    ([tensor("X", "FP32", [], [0, 5])], "inputs: there is no document"),
    (sparse([0], [], []), "inputs: there is no document"),
    (sparse([0, 1], [-1], [1.0]), "indices: must lie between 0 and 2147483647"),
    (sparse([0, 1], [2**31], [1.0]), "indices: must lie between"),
    (sparse([0, 1], [2**70], [1.0]), "indices: data must be UINT32 numbers, but 1.18059e+21"),
    (sparse([0, 1], [0.5], [1.0]), "indices: data must be UINT32 numbers, but 0.5 is not whole, or too large"),
    (sparse([0, 2], [1, 1], [1.0, 1.0]), "document number 1: indices: index 1 is repeated"),
    (sparse([0, 5], [1], [1.0]), "indptr"),
    (sparse([3, 0], [1], [1.0]), "indptr"),
    (sparse([0, 1], [1], []), "values"),
    (
        sparse([0, 1], [0, 1, 2], [1.0, 1.0, 1.0]),
        "indptr: must go from 0 to 3, the number of indices, but goes from 0 to 1",
    ),
    (sparse([1, 2], [0, 1], [1.0, 1.0]), "indptr: must go from 0 to 2, the number of indices, but goes from 1 to 2"),
]


def test_what_cannot_be_used_is_named(client: OpenInferenceClient, gateway: Gateway) -> None:
    for inputs, detail in UNUSABLE:
        answer = gateway.client.post("/v2/models/news/infer", json={"inputs": inputs})
        assert answer.status_code == 400, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert list(answer.json()) == ["error"]
        assert detail in answer.json()["error"], inputs


def test_what_is_null_is_left_out(gateway: Gateway, client: OpenInferenceClient) -> None:
    inputs = [each | {"parameters": None} for each in SPARSE]
    expected = gateway.client.post("/v2/models/news/infer", json={"inputs": SPARSE}).json()
    body = {"inputs": inputs, "id": None, "parameters": None, "outputs": None}
    assert gateway.client.post("/v2/models/news/infer", json=body).json() == expected
    body["outputs"] = [{"name": "labels", "parameters": None}]
    assert [each["name"] for each in gateway.client.post("/v2/models/news/infer", json=body).json()["outputs"]] == [
        "labels"
    ]


def test_binary_outputs_are_answered_as_json(gateway: Gateway, client: OpenInferenceClient) -> None:
    """Clients that ask for them read both."""
    expected = gateway.client.post("/v2/models/news/infer", json={"inputs": SPARSE}).json()["outputs"]
    answer = gateway.client.post(
        "/v2/models/news/infer", json={"inputs": SPARSE, "parameters": {"binary_data_output": True}}
    )
    assert answer.json()["outputs"] == expected
    labels = {"outputs": [{"name": "labels", "parameters": {"binary_data": True}}]}
    assert (
        gateway.client.post("/v2/models/news/infer", json={"inputs": SPARSE, **labels}).json()["outputs"]
        == expected[:1]
    )


def test_refusals_have_the_form_of_the_protocol(client: OpenInferenceClient, gateway: Gateway) -> None:
    with pytest.raises(ApiError) as refused:
        client.model_infer("nobody", request=request(inputs=SPARSE))
    assert refused.value.status_code == 404
    for answer, status in (
        (gateway.client.get("/v2/models/nobody"), 404),
        (gateway.client.get("/v2/models/news/versions/7/ready"), 404),
        (gateway.client.get("/v2/nothing"), 404),
        (gateway.client.get("/v2?x=1"), 400),
        (gateway.client.post("/v2/models/news/infer", content=b"{"), 400),
        (gateway.client.post("/v2/models/news/infer", content=b"{", headers={"Content-Type": "application/json"}), 400),
        (gateway.client.post("/v2/models/news/infer", json={"inputs": SPARSE, "outputs": [{"name": "x"}]}), 400),
        (gateway.client.get("/v2/models/news/infer"), 405),
    ):
        assert answer.status_code == status, answer.text
        assert list(answer.json()) == ["error"]
