"""The linear part of a model as an ONNX graph: rows in the columns of the model in; scores, probabilities and labels out.

Input ``X``: float32, shape (n, n_features). Outputs: ``scores``, float64, shape (n, n_columns); of a model that is calibrated ``probabilities``,
float64, shape (n, n_classes); ``label``, shape (n,), strings or int64. Numbers are float64 inside, as in the service.
Source: onnx.proto of ONNX 1.12, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import HalfmoonError
from core.exports.protobuf import Message, message, number, numbers, size_of, text
from core.models.linear import LinearModel
from core.models.model import Model

_IR_VERSION, _OPERATORS = 8, 17
_FLOAT, _INT64, _STRING, _DOUBLE = 1, 7, 8, 11
_MOST_COLUMNS = 1 << 24
"""columns of X: a row of it is dense"""
_MOST_BYTES = (1 << 31) - 1
"""bytes of a message, by the standard"""
_LEAST = 1e-12


class NotExportable(HalfmoonError):
    """The model cannot be written in this format."""


def write_onnx(model: Model, about: Mapping[str, Any], file: IO[bytes]) -> None:
    """Write the graph of a linear model; ``about`` says which version it is. Raises NotExportable."""
    if not isinstance(model, LinearModel):
        raise NotExportable("a kernel model has no linear part that ONNX could hold; use format=numpy")
    if model.n_features > _MOST_COLUMNS:
        raise NotExportable(f"X would have {model.n_features} columns, and ONNX knows no sparse rows; use format=numpy")
    graph = _graph(model)
    if size_of(graph) > _MOST_BYTES:
        raise NotExportable("the weights take more than 2 GiB, the most that an ONNX file holds; use format=numpy")
    meta = {name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for name, each in about.items()}
    properties = [message(14, text(1, name), text(2, value)) for name, value in meta.items()]
    for piece in _joined(number(1, _IR_VERSION), text(2, "halfmoon"), message(8, number(2, _OPERATORS)), message(7, graph), *properties):
        file.write(piece)


def _graph(model: LinearModel) -> Message:
    parts = [text(2, "classifier"), *_score_nodes(model), *_label_nodes(model)]
    outputs = [message(12, _value("scores", _DOUBLE, ["n", model.n_columns]))]
    if model.calibration is not None:
        parts += _probability_nodes(model)
        outputs.append(message(12, _value("probabilities", _DOUBLE, ["n", len(model.classes)])))
    outputs.append(message(12, _value("label", _STRING if isinstance(model.classes[0], str) else _INT64, ["n"])))
    return list(_joined(*parts, message(11, _value("X", _FLOAT, ["n", model.n_features])), *outputs))


def _score_nodes(model: LinearModel) -> Iterator[Message]:
    yield _tensor("features", model.features.astype(np.int64))
    yield _tensor("coefficients", model.coefficients)
    yield _tensor("intercepts", model.intercepts)
    yield _node("Gather", ["X", "features"], "seen", axis=1)
    yield _node("Cast", ["seen"], "rows", to=_DOUBLE)
    yield _node("MatMul", ["rows", "coefficients"], "products")
    yield _node("Add", ["products", "intercepts"], "scores")


def _probability_nodes(model: LinearModel) -> Iterator[Message]:
    """As core.validation.calibration has them."""
    calibration = model.calibration
    assert calibration is not None
    for name, array in (("slopes", calibration.slopes), ("offsets", calibration.offsets), ("odds", calibration.odds)):
        yield _tensor(name, array)
    yield _tensor("least", np.array([_LEAST]))
    yield _tensor("last_axis", np.array([1], np.int64))
    yield _node("Mul", ["scores", "slopes"], "scaled")
    yield _node("Add", ["scaled", "offsets"], "margins")
    if model.n_columns == 1 and len(model.classes) == 2:
        yield _node("Sub", ["margins", "margins"], "zeros")
        yield _node("Concat", ["zeros", "margins"], "all_margins", axis=1)
    else:
        yield _node("Identity", ["margins"], "all_margins")
    yield _node("ReduceMax", ["all_margins"], "largest", axes=[1], keepdims=1)
    yield _node("Sub", ["all_margins", "largest"], "shifted")
    yield _node("Exp", ["shifted"], "likelihoods")
    yield _node("Mul", ["likelihoods", "odds"], "weighed")
    yield _node("Add", ["weighed", "least"], "raised")
    yield _node("ReduceSum", ["raised", "last_axis"], "sums", keepdims=1)
    yield _node("Div", ["raised", "sums"], "probabilities")


def _label_nodes(model: LinearModel) -> Iterator[Message]:
    """The likeliest class, or by scores alone where there are no probabilities: the second of two if its score is above 0."""
    yield _classes(model.classes)
    if len(model.classes) == 2 and model.calibration is None:
        yield _tensor("zero", np.array([0.0]))
        yield _tensor("column", np.array([1], np.int64))
        yield _node("Greater", ["scores", "zero"], "above")
        yield _node("Cast", ["above"], "places", to=_INT64)
        yield _node("Squeeze", ["places", "column"], "place")
    else:
        yield _node("ArgMax", ["scores" if model.calibration is None else "probabilities"], "place", axis=1, keepdims=0)
    yield _node("Gather", ["classes", "place"], "label", axis=0)


def _node(operator: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> Message:
    named = [message(5, text(1, name), *_attribute(value)) for name, value in attributes.items()]
    return message(1, *(text(1, each) for each in inputs), text(2, output), text(3, output), text(4, operator), *named)


def _attribute(value: int | list[int]) -> tuple[Message, Message]:
    return (numbers(8, value), number(20, 7)) if isinstance(value, list) else (number(3, value), number(20, 2))


def _tensor(name: str, array: NDArray[Any]) -> Message:
    kind = _DOUBLE if array.dtype == np.float64 else _INT64
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return message(5, numbers(1, array.shape), number(2, kind), text(8, name), message(9, [little.data.cast("B")] if little.size else []))


def _classes(classes: Sequence[str | int]) -> Message:
    if isinstance(classes[0], int):
        return _tensor("classes", np.array(classes, np.int64))
    return message(5, number(1, len(classes)), number(2, _STRING), *(text(6, str(each)) for each in classes), text(8, "classes"))


def _value(name: str, kind: int, shape: Sequence[str | int]) -> Message:
    dimensions = [message(1, text(2, each) if isinstance(each, str) else number(1, each)) for each in shape]
    return [*text(1, name), *message(2, message(1, number(1, kind), message(2, *dimensions)))]


def _joined(*parts: Message) -> Iterator[bytes | memoryview]:
    for part in parts:
        yield from part
