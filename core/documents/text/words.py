"""Words by number: finds the words of texts by compiled loops, and numbers new ones in order of first occurrence.

Characters are looked up by code point: their lower case, and whether they belong to words, both as in Python's regular
expressions.
"""

import os
import re
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows, spans
from core.documents.text.batches import SPAN_BYTES, SPAN_ROWS
from core.documents.text.word_loops import FOUND_LENGTH, move_slots, number_words, scan_texts
from core.numerics.compiled import read_only

_SIGMA, _DOTTED = "\u03a3", "\u0130"
"""capital letters whose lower case is not one character by itself: another sigma ends a word, and a dotted I becomes
two characters"""
_BYTES = (_SIGMA.encode(), _DOTTED.encode())
LOWER_GROWTH = 2
"""bound on the bytes of a character's lower case, in bytes of the character"""


@cache
def character_table() -> NDArray[np.uint32]:
    """shape (0x110000,): twice the lower case of each code point, and 1 more where that belongs to words."""
    every = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    lower = every.replace(_SIGMA, _SIGMA.lower()).replace(_DOTTED, " ").lower()
    table: NDArray[np.uint32] = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), "<u4").astype(
        np.uint32
    ) << np.uint32(1)
    for word in re.finditer(r"\w+", lower):
        table[word.start() : word.end()] |= np.uint32(1)
    return table


def lowered_by_character(texts: TextRows) -> TextRows:
    """The texts, or their lower case where the table cannot lower them character by character."""
    data = texts.data[texts.indptr[0] : texts.indptr[-1]].tobytes()
    if not any(letter in data for letter in _BYTES):
        return texts
    return TextRows.of([text.lower() for text in texts])


_BYTES_A_WORD = 3
"""bytes of text for each word at least: two characters, and what ends it"""
_SLOTS, _LETTERS = 1 << 12, 1 << 14
_LOW = np.uint64(2**32 - 1)
_HALF, _ONE = np.uint64(32), np.uint64(1)


Number = TypeVar("Number", np.int64, np.uint8)


class Scan(NamedTuple):
    """The words of some texts."""

    words: NDArray[np.int32]
    """shape (n_words,): their numbers, −1 for unknown ones"""
    owners: NDArray[np.int32]
    """shape (n_words,): text of each, ascending"""
    unknown: NDArray[np.int64]
    """shape (n_unknown, 4): see core.documents.text.word_loops"""
    letters: NDArray[np.uint8]
    """of the unknown words"""


class Words:
    """Distinct words in lower case, each with a number."""

    def __init__(self, multiplier: np.uint64 | None = None) -> None:
        """``multiplier`` of the hashes of words; None: one is drawn."""
        self._multiplier = drawn_multiplier() if multiplier is None else multiplier
        self.clear()

    def clear(self) -> None:
        """Forget all words."""
        self.count = 0
        """Number of words."""
        self._slots = np.zeros((_SLOTS, 2), np.uint64)
        self._starts = np.zeros(_SLOTS // 2 + 1, np.int64)
        self._letters = np.zeros(_LETTERS, np.uint8)

    @classmethod
    def of(cls, texts: TextRows) -> "Words":
        """The words of these texts, numbered in their order."""
        words = cls()
        for span in spans(texts.indptr, SPAN_ROWS, SPAN_BYTES):
            words.number(words.scan(texts.between(*span)))
        return words

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._slots.nbytes + self._starts.nbytes + self._letters.nbytes

    def scan(self, texts: TextRows, keep_unknown: bool = True) -> Scan:
        """The words of some texts, the unknown ones kept if they are to get numbers.

        Threads may scan side by side, while no words get numbers.
        """
        texts = lowered_by_character(texts)
        n_bytes = int(texts.indptr[-1] - texts.indptr[0])
        most = n_bytes // _BYTES_A_WORD + texts.n_rows
        words, owners = np.empty(most, np.int32), np.empty(most, np.int32)
        unknown = np.empty((most if keep_unknown else 0, 4), np.int64)
        letters = np.empty(LOWER_GROWTH * n_bytes, np.uint8)
        indptr, data = read_only(texts.indptr), read_only(texts.data)
        n_words, n_unknown = scan_texts(
            indptr,
            data,
            character_table(),
            self._multiplier,
            self._slots,
            self._starts,
            self._letters,
            letters,
            words,
            owners,
            unknown,
        )
        unknown = unknown[:n_unknown].copy()
        return Scan(words[:n_words], owners[:n_words], unknown, letters[: unknown[:, FOUND_LENGTH].sum()].copy())

    def number(self, scan: Scan) -> None:
        """Give numbers to the unknown words of a scan."""
        done = 0
        while True:
            done, self.count = number_words(
                scan.letters, scan.unknown, done, scan.words, self._slots, self._starts, self._letters, self.count
            )
            if done == len(scan.unknown):
                return
            self._grow(int(scan.unknown[done, FOUND_LENGTH]))

    @property
    def texts(self) -> TextRows:
        """The words by number."""
        return TextRows(self._starts[: self.count + 1], self._letters)

    @property
    def tags(self) -> NDArray[np.uint32]:
        """shape (count,): hashes of the words, equal for equal words wherever the multiplier is the same."""
        taken = self._slots[self._slots[:, 0] != 0, 0]
        found = np.empty(self.count, np.uint32)
        found[((taken & _LOW) - _ONE).astype(np.int64)] = taken >> _HALF
        return found

    def text(self, number: int) -> str:
        """A word."""
        return self._letters[self._starts[number] : self._starts[number + 1]].tobytes().decode()

    def _grow(self, length: int) -> None:
        """Make room for a word of so many bytes."""
        if 2 * self.count >= len(self._slots):
            slots = np.zeros((2 * len(self._slots), 2), np.uint64)
            move_slots(self._slots, slots)
            self._slots = slots
        if self.count + 1 >= len(self._starts):
            self._starts = _enlarged(self._starts, 0)
        if self._starts[self.count] + length > len(self._letters):
            self._letters = _enlarged(self._letters, length)


def drawn_multiplier() -> np.uint64:
    """A multiplier of hashes, drawn so that nobody can send words with equal hashes; no answer depends on it."""
    return np.uint64(int.from_bytes(os.urandom(8), "little") | 1)


def _enlarged(array: NDArray[Number], more: int) -> NDArray[Number]:
    """The array with room for at least so much more."""
    return np.concatenate([array, np.zeros(max(more, len(array) // 8), array.dtype)])
