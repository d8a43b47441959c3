"""BERT as an ONNX graph, made of the weights that transformers stores as safetensors: so onnxruntime runs it, without
torch.

The graph takes ``input_ids``, ``attention_mask`` and ``token_type_ids``, int64 of shape (n, length), and gives the
states of the last layer, float32 of shape (n, length, width). Layers are normalized after each sum, GELU is that of the
error function, positions are learned. Source: Devlin et al. 2019, BERT; the names of the weights are those of
``BertModel`` of transformers.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.exports.onnx_graph import (
    FLOAT,
    INT64,
    GraphTooLarge,
    Message,
    graph_input,
    graph_output,
    node,
    onnx_file,
    tensor,
)
from workers.encoders.encoder import EncoderUnavailable
from workers.encoders.tensors import tensors_in

_PREFIX = "bert."
"""what the names of weights begin with where they were stored with a head"""
_NEVER = -1e9
"""what is added to the attention to tokens that are not there"""
_REMEDY = "export it to model.onnx"
_KNOWN = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
"""what the graph is written for, by the names of config.json"""


@dataclass(frozen=True)
class _Bert:
    """Weights by name, and the numbers that they do not tell."""

    weights: Mapping[str, NDArray[Any]]
    n_layers: int
    n_heads: int
    epsilon: float

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        if name not in self.weights:
            raise EncoderUnavailable(f"has no {name} in its weights, as BERT has; {_REMEDY}")
        return np.asarray(self.weights[name], np.float32)


def bert_graph(file: Path, config: Mapping[str, Any]) -> bytes:
    """The graph of the weights of a file, as the ``config`` of its folder says. Raises EncoderUnavailable."""
    other = next(
        (f"{name} {config[name]!r}" for name, known in _KNOWN.items() if config.get(name, known) != known), None
    )
    if other:
        raise EncoderUnavailable(f"is a transformer of {other}, of which safetensors alone cannot be run; {_REMEDY}")
    if (file.parent / "2_Dense").is_dir():
        raise EncoderUnavailable(f"has a layer after its transformer, in 2_Dense; {_REMEDY} together with that")
    weights = {name.removeprefix(_PREFIX): each for name, each in tensors_in(file).items()}
    bert = _Bert(
        weights,
        int(config["num_hidden_layers"]),
        int(config["num_attention_heads"]),
        float(config.get("layer_norm_eps", 1e-12)),
    )
    width = bert["embeddings.word_embeddings.weight"].shape[1]
    if width % bert.n_heads:
        raise EncoderUnavailable(f"has {width} numbers a token, which its {bert.n_heads} heads cannot share")
    values = [graph_input(name, INT64, ["n", "length"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    output = graph_output(f"state{bert.n_layers}", FLOAT, ["n", "length", width])
    layers = [part for number in range(bert.n_layers) for part in _layer(bert, number)]
    try:
        return b"".join(
            onnx_file("bert", [*_constants(width, bert.n_heads), *_embeddings(bert), *layers, *values, output])
        )
    except GraphTooLarge:
        raise EncoderUnavailable(
            f"takes more than 2 GiB; {_REMEDY}, with weights of 16 bits or in files of their own"
        ) from None


def _constants(width: int, n_heads: int) -> Iterator[Message]:
    per_head = width // n_heads
    yield tensor("zero", np.zeros(1, np.int64))
    yield tensor("beside_heads", np.array([1, 2], np.int64))
    yield tensor("heads", np.array([0, 0, n_heads, per_head], np.int64))
    yield tensor("together", np.array([0, 0, width], np.int64))
    for name, number in (
        ("one", 1.0),
        ("half", 0.5),
        ("root_of_two", math.sqrt(2)),
        ("scale", 1 / math.sqrt(per_head)),
        ("never", _NEVER),
    ):
        yield tensor(name, np.array([number], np.float32))


def _embeddings(bert: _Bert) -> Iterator[Message]:
    """The first state, and the amount added to the attention to each token."""
    for name in ("word", "token_type", "position"):
        yield tensor(name, bert[f"embeddings.{name}_embeddings.weight"])
    yield node("Gather", ["word", "input_ids"], "words", axis=0)
    yield node("Gather", ["token_type", "token_type_ids"], "types", axis=0)
    yield node("Shape", ["input_ids"], "length", start=1, end=2)
    yield node("Slice", ["position", "zero", "length"], "positions")
    yield node("Add", ["words", "types"], "typed")
    yield node("Add", ["typed", "positions"], "embedded")
    yield from _normalized(bert, "embeddings", "embedded", "state0")
    yield node("Cast", ["attention_mask"], "there", to=FLOAT)
    yield node("Sub", ["one", "there"], "missing")
    yield node("Mul", ["missing", "never"], "kept_off")
    yield node("Unsqueeze", ["kept_off", "beside_heads"], "mask")


def _layer(bert: _Bert, number: int) -> Iterator[Message]:
    """State ``number`` + 1 of state ``number``."""
    state, own = f"state{number}", f"encoder.layer.{number}"
    for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        yield from _linear(bert, f"{own}.attention.self.{name}", state, f"{own}.{name}")
        yield node("Reshape", [f"{own}.{name}", "heads"], f"{own}.{name}.heads")
        yield node("Transpose", [f"{own}.{name}.heads"], f"{own}.{name}.turned", perm=order)
    yield node("MatMul", [f"{own}.query.turned", f"{own}.key.turned"], f"{own}.products")
    yield node("Mul", [f"{own}.products", "scale"], f"{own}.scaled")
    yield node("Add", [f"{own}.scaled", "mask"], f"{own}.masked")
    yield node("Softmax", [f"{own}.masked"], f"{own}.attention")
    yield node("MatMul", [f"{own}.attention", f"{own}.value.turned"], f"{own}.seen")
    yield node("Transpose", [f"{own}.seen"], f"{own}.seen.turned", perm=[0, 2, 1, 3])
    yield node("Reshape", [f"{own}.seen.turned", "together"], f"{own}.context")
    yield from _linear(bert, f"{own}.attention.output.dense", f"{own}.context", f"{own}.attended")
    yield node("Add", [f"{own}.attended", state], f"{own}.with_state")
    yield from _normalized(bert, f"{own}.attention.output", f"{own}.with_state", f"{own}.middle")
    yield from _linear(bert, f"{own}.intermediate.dense", f"{own}.middle", f"{own}.wide")
    yield from _gelu(f"{own}.wide", f"{own}.bent")
    yield from _linear(bert, f"{own}.output.dense", f"{own}.bent", f"{own}.narrow")
    yield node("Add", [f"{own}.narrow", f"{own}.middle"], f"{own}.with_middle")
    yield from _normalized(bert, f"{own}.output", f"{own}.with_middle", f"state{number + 1}")


def _linear(bert: _Bert, name: str, source: str, target: str) -> Iterator[Message]:
    yield tensor(f"{name}.weight", bert[f"{name}.weight"].T)
    yield tensor(f"{name}.bias", bert[f"{name}.bias"])
    yield node("MatMul", [source, f"{name}.weight"], f"{target}.unbiased")
    yield node("Add", [f"{target}.unbiased", f"{name}.bias"], target)


def _normalized(bert: _Bert, name: str, source: str, target: str) -> Iterator[Message]:
    for part in ("weight", "bias"):
        yield tensor(f"{name}.LayerNorm.{part}", bert[f"{name}.LayerNorm.{part}"])
    yield node(
        "LayerNormalization",
        [source, f"{name}.LayerNorm.weight", f"{name}.LayerNorm.bias"],
        target,
        epsilon=bert.epsilon,
    )


def _gelu(source: str, target: str) -> Iterator[Message]:
    """x (1 + erf(x / √2)) / 2"""
    yield node("Div", [source, "root_of_two"], f"{target}.divided")
    yield node("Erf", [f"{target}.divided"], f"{target}.error")
    yield node("Add", [f"{target}.error", "one"], f"{target}.raised")
    yield node("Mul", [source, f"{target}.raised"], f"{target}.doubled")
    yield node("Mul", [f"{target}.doubled", "half"], target)
