"""A static encoder of four tokens in a folder."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

TABLE = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 4]], np.float32)


def static_folder(folder: Path, table: NDArray[np.float32] = TABLE) -> Path:
    """A static encoder of the words goal, vote and late."""
    folder.mkdir(exist_ok=True)
    vocabulary = {"[UNK]": 0, "goal": 1, "vote": 2, "late": 3}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    save_file({"embeddings": table}, folder / "model.safetensors")
    return folder


def states(given: dict[str, NDArray[np.float32]], ids: list[int], n_heads: int, epsilon: float) -> NDArray[np.float64]:
    """The last states of one text, in float64."""

    def normalized(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        spread = np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
        return np.asarray(
            (x - x.mean(axis=-1, keepdims=True)) / spread * given[f"{name}.LayerNorm.weight"]
            + given[f"{name}.LayerNorm.bias"]
        )

    def linear(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return np.asarray(x @ given[f"{name}.weight"].T.astype(np.float64) + given[f"{name}.bias"])

    words, positions = given["embeddings.word_embeddings.weight"], given["embeddings.position_embeddings.weight"]
    x = normalized(
        words[ids].astype(np.float64) + given["embeddings.token_type_embeddings.weight"][0] + positions[: len(ids)],
        "embeddings",
    )
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in given:
        own = f"encoder.layer.{layer}"
        heads = (
            linear(x, f"{own}.attention.self.{name}").reshape(len(ids), n_heads, -1)
            for name in ("query", "key", "value")
        )
        query, key, value = (each.transpose(1, 0, 2) for each in heads)
        products = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[2]))
        context = (products / products.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        x = normalized(linear(context, f"{own}.attention.output.dense") + x, f"{own}.attention.output")
        wide = linear(x, f"{own}.intermediate.dense")
        bent = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x, layer = normalized(linear(bent, f"{own}.output.dense") + x, f"{own}.output"), layer + 1
    return x
