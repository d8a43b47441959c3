"""The places of terms in a text, for people who read it."""

import re
from collections.abc import Sequence
from itertools import pairwise

_WORD = re.compile(r"\b\w\w+\b")
MOST_CHARACTERS = 100_000
"""Characters of a text that are looked at."""

Span = tuple[int, int]


def term_spans(text: str, terms: Sequence[str]) -> list[list[Span]]:
    """Of each term, which is a word or a pair of consecutive words in lower case: where it stands, as its first
    character and that after its last.
    """
    words = [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text[:MOST_CHARACTERS])]
    found: dict[str, list[Span]] = {term: [] for term in terms}
    for word, start, end in words:
        if word in found:
            found[word].append((start, end))
    for (first, start, _), (second, _, end) in pairwise(words):
        pair = f"{first} {second}"
        if pair in found:
            found[pair].append((start, end))
    return [found[term] for term in terms]
