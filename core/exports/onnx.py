"""The linear part of a model as an ONNX graph: rows in the columns of the model in; scores, probabilities and labels
out.

Input ``X``: float32, shape (n, n_features). Outputs: ``scores``, float64, shape (n, n_columns); of a model that is
calibrated ``probabilities``, float64, shape (n, n_classes); ``label``, shape (n,), strings or int64. Numbers are
float64 inside, as in the service.
"""

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from core.documents.term_weights import EXACT, MOST_OFF
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
from core.models.parted import PartedModel
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
    columns = [graph_input("X", FLOAT, ["n", model.n_features]), graph_output("scores", DOUBLE, ["n", model.n_columns])]
    parts = [*_score_nodes(model), *columns]
    if model.calibration is not None:
        parts.append(graph_output("probabilities", DOUBLE, ["n", len(model.classes)]))
    if isinstance(model.calibration, LabelCalibration):
        labels = graph_output("labels", INT64, ["n", len(model.classes)])
        return [*parts, *_several_nodes(model, model.calibration), labels]
    if model.calibration is not None:
        parts += _probability_nodes(model, model.calibration)
    label = graph_output("label", STRING if isinstance(model.classes[0], str) else INT64, ["n"])
    return [*parts, *_label_nodes(model), label]


def _score_nodes(model: LinearModel) -> list[Message]:
    if not isinstance(model, PartedModel):
        return _linear_nodes(model, "", "scores")
    ranges = [np.arange(start, stop) for start, stop in model.required.tolist()]
    largest = [f"largest_{part}" for part in range(len(ranges))]
    return [
        *_linear_nodes(model, "", "complete_scores"),
        *_linear_nodes(model.incomplete, "incomplete_", "incomplete_scores"),
        tensor("no_value", np.zeros(1, np.float32)),
        *(each for part, columns in enumerate(ranges) for each in _largest_nodes(part, columns)),
        node("Min", largest, "least_of_parts"),
        node("Greater", ["least_of_parts", "no_value"], "complete"),
        node("Where", ["complete", "complete_scores", "incomplete_scores"], "scores"),
    ]


def _largest_nodes(part: int, columns: NDArray[np.int64]) -> list[Message]:
    """The largest size of a value in these columns: 0 of a document that lacks the part."""
    return [
        tensor(f"columns_{part}", columns),
        node("Gather", ["X", f"columns_{part}"], f"values_{part}", axis=1),
        node("Abs", [f"values_{part}"], f"sizes_{part}"),
        node("ReduceMax", [f"sizes_{part}"], f"largest_{part}", axes=[1], keepdims=1),
    ]


def _linear_nodes(model: LinearModel, prefix: str, scores: str) -> list[Message]:
    return [
        tensor(f"{prefix}features", model.features.astype(np.int64)),
        tensor(f"{prefix}coefficients", model.coefficients),
        tensor(f"{prefix}intercepts", model.intercepts),
        node("Gather", ["X", f"{prefix}features"], f"{prefix}seen", axis=1),
        *_row_nodes(model, prefix),
        node("MatMul", [f"{prefix}rows", f"{prefix}coefficients"], f"{prefix}products"),
        node("Add", [f"{prefix}products", f"{prefix}intercepts"], scores),
    ]


def _row_nodes(model: LinearModel, prefix: str) -> list[Message]:
    """Rows of the features of the model; where it weighs values, as core.documents.term_weights has them."""
    if model.terms is None:
        return [node("Cast", [f"{prefix}seen"], f"{prefix}rows", to=DOUBLE)]
    given, nodes = "doubles", [node("Cast", [f"{prefix}seen"], "doubles", to=DOUBLE)]
    if model.terms.signed:
        nodes, given = [*nodes, node("Abs", [given], "sizes")], "sizes"
    if model.terms.divided:
        nodes, given = [*nodes, *_multiple_nodes(given)], "multiples"
    if model.terms.counts:
        nodes, given = [*nodes, *_logarithm_nodes(given)], "values"
    return [
        *nodes,
        tensor("idf", np.maximum(model.terms.idf, 0.0)),
        tensor("of_numbers", np.maximum(-model.terms.idf, 0.0)),
        tensor("shortest", np.array([np.finfo(np.float64).tiny])),
        node("Mul", [given, "idf"], "terms"),
        node("ReduceL2", ["terms"], "lengths", axes=[1], keepdims=1),
        node("Max", ["lengths", "shortest"], "divisors"),
        node("Div", ["terms", "divisors"], "exact"),
        node("Cast", ["exact"], "rounded", to=FLOAT),
        node("Cast", ["rounded"], "terms_alone", to=DOUBLE),
        node("Mul", ["doubles", "of_numbers"], "exact_numbers"),
        node("Cast", ["exact_numbers"], "rounded_numbers", to=FLOAT),
        node("Cast", ["rounded_numbers"], "numbers", to=DOUBLE),
        node("Add", ["terms_alone", "numbers"], "rows"),
    ]


def _multiple_nodes(given: str) -> list[Message]:
    """Multiples of the smallest value of a document that is not 0, of all that it has; nearly whole ones are whole."""
    return [
        tensor("none", np.array([0.0])),
        tensor("endless", np.array([np.inf])),
        tensor("near", np.array([EXACT])),
        tensor("most_off", np.array([MOST_OFF])),
        node("Cast", ["X"], "of_all", to=DOUBLE),
        node("Abs", ["of_all"], "all_sizes"),
        node("Greater", ["all_sizes", "none"], "held"),
        node("Where", ["held", "all_sizes", "endless"], "held_sizes"),
        node("ReduceMin", ["held_sizes"], "smallest", axes=[1], keepdims=1),
        node("Div", [given, "smallest"], "ratios"),
        node("Round", ["ratios"], "whole"),
        node("Sub", ["ratios", "whole"], "apart"),
        node("Abs", ["apart"], "off"),
        node("Abs", ["whole"], "whole_sizes"),
        node("Mul", ["whole_sizes", "near"], "shares"),
        node("Min", ["shares", "most_off"], "bounds"),
        node("Greater", ["off", "bounds"], "far"),
        node("Where", ["far", "ratios", "whole"], "multiples"),
    ]


def _logarithm_nodes(given: str) -> list[Message]:
    """Logarithms of the sizes of counts, below 1 the sizes themselves, with the signs of the counts."""
    return [
        tensor("one", np.array([1.0])),
        node("Abs", [given], "counts"),
        node("Sign", [given], "signs"),
        node("Min", ["counts", "one"], "below_one"),
        node("Max", ["counts", "one"], "above_one"),
        node("Log", ["above_one"], "logs"),
        node("Add", ["below_one", "logs"], "weights"),
        node("Mul", ["weights", "signs"], "values"),
    ]


def _several_nodes(model: LinearModel, calibration: LabelCalibration) -> list[Message]:
    """As core.validation.label_calibration has them: probabilities of labels, and 1 where a label is given."""
    return [
        tensor("slopes", calibration.slopes),
        tensor("offsets", calibration.offsets),
        tensor("thresholds", calibration.thresholds),
        _classes(model.classes),
        node("Mul", ["scores", "slopes"], "scaled"),
        node("Add", ["scaled", "offsets"], "margins"),
        node("Sigmoid", ["margins"], "probabilities"),
        node("Less", ["probabilities", "thresholds"], "below"),
        node("Not", ["below"], "given"),
        node("Cast", ["given"], "labels", to=INT64),
    ]


def _probability_nodes(model: LinearModel, calibration: Calibration) -> list[Message]:
    """As core.validation.calibration has them."""
    of_all = [node("Identity", ["margins"], "all_margins")]
    if model.n_columns == 1 and len(model.classes) == 2:
        of_all = [
            node("Sub", ["margins", "margins"], "zeros"),
            node("Concat", ["zeros", "margins"], "all_margins", axis=1),
        ]
    return [
        tensor("slopes", calibration.slopes),
        tensor("offsets", calibration.offsets),
        tensor("odds", calibration.odds),
        tensor("least", np.array([_LEAST])),
        tensor("last_axis", np.array([1], np.int64)),
        node("Mul", ["scores", "slopes"], "scaled"),
        node("Add", ["scaled", "offsets"], "margins"),
        *of_all,
        node("ReduceMax", ["all_margins"], "largest", axes=[1], keepdims=1),
        node("Sub", ["all_margins", "largest"], "shifted"),
        node("Exp", ["shifted"], "likelihoods"),
        node("Mul", ["likelihoods", "odds"], "weighed"),
        node("Add", ["weighed", "least"], "raised"),
        node("ReduceSum", ["raised", "last_axis"], "sums", keepdims=1),
        node("Div", ["raised", "sums"], "probabilities"),
    ]


def _label_nodes(model: LinearModel) -> list[Message]:
    """The likeliest class, or by scores alone where there are no probabilities: the second of two if its score is above
    0.
    """
    largest = "scores" if model.calibration is None else "probabilities"
    places = [node("ArgMax", [largest], "place", axis=1, keepdims=0)]
    if len(model.classes) == 2 and model.calibration is None:
        places = [
            tensor("zero", np.array([0.0])),
            tensor("column", np.array([1], np.int64)),
            node("Greater", ["scores", "zero"], "above"),
            node("Cast", ["above"], "places", to=INT64),
            node("Squeeze", ["places", "column"], "place"),
        ]
    return [_classes(model.classes), *places, node("Gather", ["classes", "place"], "label", axis=0)]


def _classes(classes: Sequence[str | int]) -> Message:
    if isinstance(classes[0], int):
        return tensor("classes", np.array(classes, np.int64))
    return message(
        5, number(1, len(classes)), number(2, STRING), *(text(6, str(each)) for each in classes), text(8, "classes")
    )
