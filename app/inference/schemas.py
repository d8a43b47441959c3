"""The objects of the Open Inference Protocol by its own names, for the contract and the answers that are not tensors."""

from typing import Any

from pydantic import Field

from app.http.schemas import Schema

Parameters = dict[str, Any]


class ServerLive(Schema):
    """The process answers."""

    live: bool


class ServerReady(Schema):
    """The service can take work."""

    ready: bool


class ServerMetadata(Schema):
    """Who answers."""

    name: str
    version: str
    extensions: list[str]


class ModelReady(Schema):
    """A model can predict."""

    name: str
    ready: bool


class TensorMetadata(Schema):
    """What a tensor is called, and what is in it; a dimension of -1 is of any length."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(Schema):
    """What goes into a model and what comes out."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    """a CSR matrix; a dense matrix X of type FP32 or FP64 may stand in for the three"""
    outputs: list[TensorMetadata]


class RequestInput(Schema):
    """A tensor that is sent."""

    name: str = Field(examples=["indptr"])
    shape: list[int]
    datatype: str
    data: list[Any]
    """flat, or in rows as the shape is"""
    parameters: Parameters | None = None


class RequestOutput(Schema):
    """A tensor that is wanted."""

    name: str = Field(examples=["labels"])
    parameters: Parameters | None = None


class InferenceRequest(Schema):
    """Documents as tensors: indptr, indices and data of a CSR matrix, or a dense X."""

    id: str | None = None
    parameters: Parameters | None = None
    inputs: list[RequestInput]
    outputs: list[RequestOutput] | None = None
    """by default labels, scores and, if the model knows them, probabilities; classes on request"""


class ResponseOutput(Schema):
    """A tensor that is answered."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferenceResponse(Schema):
    """Labels and scores; ``scores`` has one column for two classes, for the second, else one for each."""

    model_name: str
    model_version: str
    id: str | None = None
    """that of the request, if it had one"""
    outputs: list[ResponseOutput]


class InferenceError(Schema):
    """What went wrong."""

    error: str


MODELS = (ServerLive, ServerReady, ServerMetadata, ModelMetadata, ModelReady, InferenceRequest, InferenceResponse, InferenceError)
"""All that the contract names."""
