"""BERT as an ONNX graph, made of its weights: so onnxruntime runs it, without torch.

The graph takes the vectors of the tokens of one text and gives the states of the last layer, both float32 of shape
(1, length, width). Layers are normalized after each sum, GELU is that of the error function, positions are learned.
Source: Devlin et al. 2019, BERT; the names of the weights are those of ``BertModel`` of transformers.

Products may be rounded to eight bits: each row of states by its own scale, each column of weights by its own. So a
vector does not depend on the texts beside it. Values of the attention stay as they are, as they bear rounding least.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.exports.onnx_graph import (
    FLOAT,
    UINT8,
    GraphTooLarge,
    Message,
    graph_input,
    graph_output,
    node,
    onnx_file,
    tensor,
)
from workers.encoders.encoder import EncoderUnavailable, Vectors, tensors_in

_PREFIX = "bert."
"""what the names of weights begin with where they were stored with a head"""
_WORDS = "embeddings.word_embeddings.weight"
_LEAST_GELU = -0.17
"""what GELU is never below"""
_REMEDY = "export it to model.onnx"
_MICROSOFT = "com.microsoft"
"""domain of the operators of attention, in which onnxruntime goes over the keys by blocks that fit its caches, and of
products of whole numbers that it scales as it writes them"""
_KNOWN = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
"""what the graph is written for, by the names of config.json"""


@dataclass(frozen=True)
class Bert:
    """A BERT without its table of words, and the numbers that its weights do not tell."""

    weights: Mapping[str, NDArray[Any]]
    words: Callable[[Sequence[int]], Vectors]
    """vectors of tokens, by the table of words"""
    n_layers: int
    n_heads: int
    epsilon: float
    rounded: bool = False
    """whether products are rounded to eight bits"""

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        if name not in self.weights:
            raise EncoderUnavailable(f"has no {name} in its weights, as BERT has; {_REMEDY}")
        return np.asarray(self.weights[name], np.float32)

    def embedding(self) -> Callable[[Sequence[int]], Vectors]:
        """Makes the vectors of tokens in their places, shape (1, n_tokens, width), which the graph takes."""
        positions = self["embeddings.position_embeddings.weight"] + self["embeddings.token_type_embeddings.weight"][0]
        words = self.words
        return lambda ids: (words(ids) + positions[: len(ids)])[None]


def bert_in(file: Path, config: Mapping[str, Any]) -> Bert:
    """The BERT of a file of safetensors, as the ``config`` of its folder says; raises EncoderUnavailable."""
    other = next(
        (f"{name} {config[name]!r}" for name, known in _KNOWN.items() if config.get(name, known) != known), None
    )
    if other:
        raise EncoderUnavailable(f"is a transformer of {other}, of which safetensors alone cannot be run; {_REMEDY}")
    if (file.parent / "2_Dense").is_dir():
        raise EncoderUnavailable(f"has a layer after its transformer, in 2_Dense; {_REMEDY} together with that")
    weights = {name.removeprefix(_PREFIX): each for name, each in tensors_in(file).items()}
    if _WORDS not in weights:
        raise EncoderUnavailable(f"has no {_WORDS} in its weights, as BERT has; {_REMEDY}")
    table = weights[_WORDS]
    return Bert(
        weights,
        lambda ids: np.asarray(table[ids], np.float32),
        int(config["num_hidden_layers"]),
        int(config["num_attention_heads"]),
        float(config.get("layer_norm_eps", 1e-12)),
    )


def bert_graph(bert: Bert) -> bytes:
    """The graph of a BERT; raises EncoderUnavailable."""
    width = len(bert["embeddings.LayerNorm.weight"])
    if width % bert.n_heads:
        raise EncoderUnavailable(f"has {width} numbers a token, which its {bert.n_heads} heads cannot share")
    values = [
        graph_input("embedded", FLOAT, ["n", "length", width]),
        graph_output(f"state{bert.n_layers}", FLOAT, ["n", "length", width]),
    ]
    first = _normalized(bert, "embeddings", "embedded", "state0")
    layers = [part for number in range(bert.n_layers) for part in _layer(bert, number)]
    try:
        return b"".join(onnx_file("bert", [*_constants(), *first, *layers, *values], domains={_MICROSOFT: 1}))
    except GraphTooLarge:
        raise EncoderUnavailable(
            f"takes more than 2 GiB; {_REMEDY}, with weights of 16 bits or in files of their own"
        ) from None


def largest_product() -> bytes:
    """A graph of the largest sum of 64 products as those of a rounded BERT: ``given`` uint8 of shape (n, 64), all 255,
    times 127.
    """
    parts = [
        tensor("weight", np.full((64, 16), 127, np.int8)),
        tensor("unit", np.array(1, np.float32)),
        node("MatMulIntegerToFloat", ["given", "weight", "unit", "unit"], "product", domain=_MICROSOFT),
        graph_input("given", UINT8, ["n", 64]),
        graph_output("product", FLOAT, ["n", 16]),
    ]
    return b"".join(onnx_file("product", parts, domains={_MICROSOFT: 1}))


def _constants() -> list[Message]:
    numbers = {
        "one": 1.0,
        "half": 0.5,
        "root_of_two": math.sqrt(2),
        "least": _LEAST_GELU,
        "span": 255.0,
        "half_span": 127.0,
        "middle_and_half": 128.5,
    }
    return [
        tensor("middle", np.array(128, np.uint8)),
        tensor("bottom", np.array(0, np.uint8)),
        tensor("unit", np.array(1, np.float32)),
        *(tensor(name, np.array([number], np.float32)) for name, number in numbers.items()),
    ]


def _layer(bert: Bert, number: int) -> list[Message]:
    """State ``number`` + 1 of state ``number``."""
    state, own = f"state{number}", f"encoder.layer.{number}"
    query, key, value = f"{own}.query", f"{own}.key", f"{own}.value"
    return [
        *_rounded(bert, state),
        *_linear(bert, f"{own}.attention.self.query", state, query),
        *_linear(bert, f"{own}.attention.self.key", state, key),
        *_linear(bert, f"{own}.attention.self.value", state, value, exact=True),
        node("MultiHeadAttention", [query, key, value], f"{own}.context", domain=_MICROSOFT, num_heads=bert.n_heads),
        *_rounded(bert, f"{own}.context"),
        *_linear(bert, f"{own}.attention.output.dense", f"{own}.context", f"{own}.attended"),
        node("Add", [f"{own}.attended", state], f"{own}.with_state"),
        *_normalized(bert, f"{own}.attention.output", f"{own}.with_state", f"{own}.middle"),
        *_rounded(bert, f"{own}.middle"),
        *_linear(bert, f"{own}.intermediate.dense", f"{own}.middle", f"{own}.wide"),
        *_gelu(f"{own}.wide", f"{own}.bent"),
        *_rounded(bert, f"{own}.bent", least=_LEAST_GELU),
        *_linear(bert, f"{own}.output.dense", f"{own}.bent", f"{own}.narrow", least=_LEAST_GELU),
        node("Add", [f"{own}.narrow", f"{own}.middle"], f"{own}.with_middle"),
        *_normalized(bert, f"{own}.output", f"{own}.with_middle", f"state{number + 1}"),
    ]


def _rounded(bert: Bert, source: str, least: float = 0.0) -> list[Message]:
    """The rows of a state in eight bits, each by a scale of its own; of a state that is never below ``least`` all bits
    are above it.
    """
    if not bert.rounded:
        return []
    scaled = [
        node("Abs", [source], f"{source}.size"),
        node("ReduceMax", [f"{source}.size"], f"{source}.largest", axes=[2]),
        node("Div", [f"{source}.largest", "half_span"], f"{source}.scale"),
        node("Div", [source, f"{source}.scale"], f"{source}.scaled"),
        node("Add", [f"{source}.scaled", "middle_and_half"], f"{source}.shifted"),
    ]
    if least:
        scaled = [
            node("Sub", [source, "least"], f"{source}.above"),
            node("ReduceMax", [f"{source}.above"], f"{source}.largest", axes=[2]),
            node("Div", [f"{source}.largest", "span"], f"{source}.scale"),
            node("Div", [f"{source}.above", f"{source}.scale"], f"{source}.scaled"),
            node("Add", [f"{source}.scaled", "half"], f"{source}.shifted"),
        ]
    return [*scaled, node("Cast", [f"{source}.shifted"], f"{source}.rounded", to=UINT8)]


def _linear(
    bert: Bert, name: str, source: str, target: str, *, exact: bool = False, least: float = 0.0
) -> list[Message]:
    """The product of a state, which ``_rounded`` has rounded with the same ``least``, and weights, with their bias."""
    weight, bias = bert[f"{name}.weight"].T, bert[f"{name}.bias"]
    if exact or not bert.rounded:
        product = [
            tensor(f"{name}.weight", weight),
            node("MatMul", [source, f"{name}.weight"], f"{target}.unbiased"),
        ]
    else:
        scales = np.maximum(np.abs(weight).max(axis=0) / 127, np.finfo(np.float32).tiny)
        rounded = np.rint(weight / scales)
        bias = (bias + least * (rounded * scales).sum(axis=0)).astype(np.float32)
        zero = "bottom" if least else "middle"
        product = [
            tensor(f"{name}.weight", rounded.astype(np.int8)),
            tensor(f"{name}.scales", scales),
            node(
                "MatMulIntegerToFloat",
                [f"{source}.rounded", f"{name}.weight", "unit", f"{name}.scales", zero],
                f"{target}.of_columns",
                domain=_MICROSOFT,
            ),
            node("Mul", [f"{target}.of_columns", f"{source}.scale"], f"{target}.unbiased"),
        ]
    return [*product, tensor(f"{name}.bias", bias), node("Add", [f"{target}.unbiased", f"{name}.bias"], target)]


def _normalized(bert: Bert, name: str, source: str, target: str) -> list[Message]:
    weight, bias = f"{name}.LayerNorm.weight", f"{name}.LayerNorm.bias"
    return [
        tensor(weight, bert[weight]),
        tensor(bias, bert[bias]),
        node("LayerNormalization", [source, weight, bias], target, epsilon=bert.epsilon),
    ]


def _gelu(source: str, target: str) -> list[Message]:
    """x (1 + erf(x / √2)) / 2"""
    return [
        node("Div", [source, "root_of_two"], f"{target}.divided"),
        node("Erf", [f"{target}.divided"], f"{target}.error"),
        node("Add", [f"{target}.error", "one"], f"{target}.raised"),
        node("Mul", [source, f"{target}.raised"], f"{target}.doubled"),
        node("Mul", [f"{target}.doubled", "half"], target),
    ]
