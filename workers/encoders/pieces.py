"""Words cut into the pieces of a vocabulary, by the way of the largest sum of scores. Source: Kudo 2018, Subword
Regularization.
"""

from collections.abc import Sequence
from functools import lru_cache

_KNOWN_WORDS = 1 << 15
_SPACE = "▁"
"""what stands for the space before a word"""
_PENALTY = 10.0
"""by how much a character without a piece has a lower score than any piece"""


class Pieces:
    """Pieces with their scores. Threads may use it side by side."""

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
