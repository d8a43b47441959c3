"""The linear part of a model as an ONNX graph: rows in the columns of the model in; scores, probabilities and labels
out.

Input ``X``: float32, shape (n, n_features). Outputs: ``scores``, float64, shape (n, n_columns); of a model that is
calibrated ``probabilities``, float64, shape (n, n_classes); ``label``, shape (n,), strings or int64. Numbers are
float64 inside, as in the service.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from core.errors import HalfmoonError
from core.exports.onnx_graph import (
    DOUBLE,
    FLOAT,
    INT64,
    STRING,
    GraphTooLarge,
    Message,
    graph_input,
    graph_output,
    message,
    node,
    number,
    onnx_file,
    tensor,
    text,
)
from core.models.model import LinearModel, Model
from core.validation.calibration import Calibration
from core.validation.label_calibration import LabelCalibration

_MOST_COLUMNS = 1 << 24
"""columns of X: a row of it is dense"""
_LEAST = 1e-12


class NotExportable(HalfmoonError):
    """The model cannot be written in this format."""


def write_onnx(model: Model, about: Mapping[str, Any], file: IO[bytes]) -> None:
    """Write the graph of a linear model; ``about`` says which version it is. Raises NotExportable."""
    if not isinstance(model, LinearModel):
        raise NotExportable("a kernel model has no linear part that ONNX could hold; use format=numpy")
    if model.n_features > _MOST_COLUMNS:
        raise NotExportable(f"X would have {model.n_features} columns, and ONNX knows no sparse rows; use format=numpy")
    meta = {
        name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for name, each in about.items()
    }
    try:
        pieces = onnx_file("classifier", _parts(model), meta)
    except GraphTooLarge:
        raise NotExportable(
            "the weights take more than 2 GiB, the most that an ONNX file holds; use format=numpy"
        ) from None
    for piece in pieces:
        file.write(piece)


def _parts(model: LinearModel) -> list[Message]:
    parts = [*_score_nodes(model)]
    outputs = [graph_output("scores", DOUBLE, ["n", model.n_columns])]
    if isinstance(model.calibration, LabelCalibration):
        outputs = [*outputs, graph_output("probabilities", DOUBLE, ["n", len(model.classes)])]
        outputs.append(graph_output("labels", INT64, ["n", len(model.classes)]))
        nodes = [*_score_nodes(model), *_several_nodes(model, model.calibration)]
        return [*nodes, graph_input("X", FLOAT, ["n", model.n_features]), *outputs]
    parts += _label_nodes(model)
    if model.calibration is not None:
        parts += _probability_nodes(model, model.calibration)
        outputs.append(graph_output("probabilities", DOUBLE, ["n", len(model.classes)]))
    outputs.append(graph_output("label", STRING if isinstance(model.classes[0], str) else INT64, ["n"]))
    return [*parts, graph_input("X", FLOAT, ["n", model.n_features]), *outputs]


def _score_nodes(model: LinearModel) -> Iterator[Message]:
    yield tensor("features", model.features.astype(np.int64))
    yield tensor("coefficients", model.coefficients)
    yield tensor("intercepts", model.intercepts)
    yield node("Gather", ["X", "features"], "seen", axis=1)
    yield node("Cast", ["seen"], "rows", to=DOUBLE)
    yield node("MatMul", ["rows", "coefficients"], "products")
    yield node("Add", ["products", "intercepts"], "scores")


def _several_nodes(model: LinearModel, calibration: LabelCalibration) -> Iterator[Message]:
    """As core.validation.label_calibration has them: probabilities of labels, and 1 where a label is given."""
    for name in ("slopes", "offsets", "thresholds"):
        yield tensor(name, getattr(calibration, name))
    yield _classes(model.classes)
    yield node("Mul", ["scores", "slopes"], "scaled")
    yield node("Add", ["scaled", "offsets"], "margins")
    yield node("Sigmoid", ["margins"], "probabilities")
    yield node("Less", ["probabilities", "thresholds"], "below")
    yield node("Not", ["below"], "given")
    yield node("Cast", ["given"], "labels", to=INT64)


def _probability_nodes(model: LinearModel, calibration: Calibration) -> Iterator[Message]:
    """As core.validation.calibration has them."""
    for name, array in (("slopes", calibration.slopes), ("offsets", calibration.offsets), ("odds", calibration.odds)):
        yield tensor(name, array)
    yield tensor("least", np.array([_LEAST]))
    yield tensor("last_axis", np.array([1], np.int64))
    yield node("Mul", ["scores", "slopes"], "scaled")
    yield node("Add", ["scaled", "offsets"], "margins")
    if model.n_columns == 1 and len(model.classes) == 2:
        yield node("Sub", ["margins", "margins"], "zeros")
        yield node("Concat", ["zeros", "margins"], "all_margins", axis=1)
    else:
        yield node("Identity", ["margins"], "all_margins")
    yield node("ReduceMax", ["all_margins"], "largest", axes=[1], keepdims=1)
    yield node("Sub", ["all_margins", "largest"], "shifted")
    yield node("Exp", ["shifted"], "likelihoods")
    yield node("Mul", ["likelihoods", "odds"], "weighed")
    yield node("Add", ["weighed", "least"], "raised")
    yield node("ReduceSum", ["raised", "last_axis"], "sums", keepdims=1)
    yield node("Div", ["raised", "sums"], "probabilities")


def _label_nodes(model: LinearModel) -> Iterator[Message]:
    """The likeliest class, or by scores alone where there are no probabilities: the second of two if its score is above
    0.
    """
    yield _classes(model.classes)
    if len(model.classes) == 2 and model.calibration is None:
        yield tensor("zero", np.array([0.0]))
        yield tensor("column", np.array([1], np.int64))
        yield node("Greater", ["scores", "zero"], "above")
        yield node("Cast", ["above"], "places", to=INT64)
        yield node("Squeeze", ["places", "column"], "place")
    else:
        yield node("ArgMax", ["scores" if model.calibration is None else "probabilities"], "place", axis=1, keepdims=0)
    yield node("Gather", ["classes", "place"], "label", axis=0)


def _classes(classes: Sequence[str | int]) -> Message:
    if isinstance(classes[0], int):
        return tensor("classes", np.array(classes, np.int64))
    return message(
        5, number(1, len(classes)), number(2, STRING), *(text(6, str(each)) for each in classes), text(8, "classes")
    )
