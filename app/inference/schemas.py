"""Schemas of the Open Inference Protocol, for the contract."""

from typing import Any

from pydantic import Field

from app.http.schemas import Schema

Parameters = dict[str, Any]


class ServerLive(Schema):
    """Liveness of the process."""

    live: bool


class ServerReady(Schema):
    """Readiness of the service."""

    ready: bool


class ServerMetadata(Schema):
    """Name and version of the server."""

    name: str
    version: str
    extensions: list[str]


class ModelReady(Schema):
    """Readiness of a model."""

    name: str
    ready: bool


class TensorMetadata(Schema):
    """Name, type and shape of a tensor; a dimension of -1 has any length."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(Schema):
    """Input and output tensors of a model."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    """Inputs: the three arrays of a CSR matrix. A dense matrix X of type FP32 or FP64 may replace them."""
    outputs: list[TensorMetadata]


class RequestInput(Schema):
    """An input tensor."""

    name: str = Field(examples=["indptr"])
    shape: list[int]
    datatype: str
    data: list[Any]
    """Elements, flat or nested in the shape."""
    parameters: Parameters | None = None


class RequestOutput(Schema):
    """An output tensor that is requested."""

    name: str = Field(examples=["labels"])
    parameters: Parameters | None = None


class InferenceRequest(Schema):
    """Documents as tensors: indptr, indices and data of a CSR matrix, or a dense X."""

    id: str | None = None
    parameters: Parameters | None = None
    inputs: list[RequestInput]
    outputs: list[RequestOutput] | None = None
    """Outputs; by default labels, scores and, if the model is calibrated, probabilities. Classes are given on
    request."""


class ResponseOutput(Schema):
    """An output tensor."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferenceResponse(Schema):
    """Labels and scores.

    With two classes ``scores`` has one column, for the second class; with more it has one for each.
    """

    model_name: str
    model_version: str
    id: str | None = None
    """Id of the request, if it has one."""
    outputs: list[ResponseOutput]


class InferenceError(Schema):
    """An error."""

    error: str


MODELS = (
    ServerLive,
    ServerReady,
    ServerMetadata,
    ModelMetadata,
    ModelReady,
    InferenceRequest,
    InferenceResponse,
    InferenceError,
)
"""Schemas that only the contract uses."""
