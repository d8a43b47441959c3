"""Fits TF-IDF: finds the terms of a collection of texts, exactly, in one pass, in memory that grows with distinct terms alone."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows, spans
from core.documents.tfidf import TextTerms, key_of, occurrences, tokens_of, unspaced, words_in
from core.documents.vocabulary import UNKNOWN, string_bytes
from core.errors import InvalidDocuments
from core.numerics.elementary import log
from core.options.text import TextOptions
from core.progress import Checkpoint

_SPAN_ROWS, _SPAN_BYTES = 4096, 1 << 19
"""bounds on texts that are counted at once, in some hundred milliseconds"""
_MERGED = 1 << 20
"""terms that are merged between two checkpoints"""
SPACES = "put spaces between the words, where now whole clauses count as one, or send named features"
_COUNT_BYTES = 12

TextCheckpoint = Callable[[float, int], None]
"""Callback between slices of work: takes the share that is done and the bytes of memory that are held; what it raises ends the work."""


def fit_terms(texts: TextRows, options: TextOptions, report: TextCheckpoint) -> TextTerms:
    """The terms that occur in ``min_documents`` of the texts, at most ``max_terms``: those in most texts, of equals the first in order.

    Raises InvalidDocuments if no term does.
    """
    done, n_bytes = 0.0, max(1, int(texts.indptr[-1] - texts.indptr[0]))

    def checkpoint() -> None:
        report(done, numbers.nbytes + counts.nbytes)

    numbers, counts = _Numbers(), _Counts(checkpoint)
    for start, stop in spans(texts.indptr, _SPAN_ROWS, _SPAN_BYTES):
        counts.add(_frequencies(*occurrences(tokens_of(texts.between(start, stop), numbers), options.ngrams)))
        done = float(texts.indptr[stop] - texts.indptr[0]) / n_bytes
        checkpoint()
    keys, frequencies = counts.total()
    often = frequencies >= options.min_documents
    if not often.any():
        raise _no_term_error(len(keys), texts, options)
    checkpoint()
    return _selected_terms(list(numbers), keys[often], frequencies[often], texts.n_rows, options, checkpoint)


def _no_term_error(n_terms: int, texts: TextRows, options: TextOptions) -> InvalidDocuments:
    if not n_terms:
        return InvalidDocuments(f"none of the {texts.n_rows} documents has a word: two or more letters or digits in a row")
    remedy = SPACES if unspaced(texts) else "send more text, or lower text.min_documents"
    return InvalidDocuments(f"no word occurs in {options.min_documents} or more of the {texts.n_rows} documents; {remedy}")


class _Numbers(dict[str, int]):
    """Words by number, in order of first sight."""

    nbytes = 0
    """Memory held."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        self.nbytes += string_bytes(word)
        return number


class _Frequencies(NamedTuple):
    """Document frequencies of terms."""

    keys: NDArray[np.uint64]
    """shape (n,), ascending"""
    rows: NDArray[np.int32]
    """shape (n,): number of rows in which each occurs"""


def _frequencies(keys: NDArray[np.uint64], owners: NDArray[np.int64]) -> _Frequencies:
    """Document frequencies of terms that occur in the rows ``owners``, both of shape (n,)."""
    # rows ascend among words and among pairs, and so in each term
    order = np.argsort(keys, kind="stable")
    keys, owners = keys[order], owners[order]
    fresh = np.ones(len(keys), bool)
    fresh[1:] = keys[1:] != keys[:-1]
    elsewhere = fresh.copy()
    elsewhere[1:] |= owners[1:] != owners[:-1]
    return _Frequencies(keys[fresh], np.bincount(np.cumsum(fresh)[elsewhere] - 1, minlength=int(fresh.sum())).astype(np.int32))


class _Counts:
    """Sums of document frequencies, in sorted runs. Each is at least twice as long as the next, so that a term is merged only a few times."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._runs: list[_Frequencies] = []
        self._merging = 0

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return _COUNT_BYTES * (sum(len(run.keys) for run in self._runs) + self._merging)

    def add(self, run: _Frequencies) -> None:
        """Add frequencies; those of texts without words are empty."""
        if not len(run.keys):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and 2 * len(self._runs[-1].keys) > len(self._runs[-2].keys):
            self._merge_last()

    def total(self) -> _Frequencies:
        """The sums."""
        while len(self._runs) > 1:
            self._merge_last()
        return self._runs[0] if self._runs else _Frequencies(np.zeros(0, np.uint64), np.zeros(0, np.int32))

    def _merge_last(self) -> None:
        one, other = self._runs[-2:]
        self._merging = 2 * (len(one.keys) + len(other.keys))
        parts, at, start = [], 0, 0
        # a part at a time, with a checkpoint in between
        for end in range(_MERGED, len(one.keys) + _MERGED, _MERGED):
            stop = len(other.keys) if end >= len(one.keys) else int(np.searchsorted(other.keys, one.keys[end]))
            parts.append(_merged(_part(one, at, end), _part(other, start, stop)))
            at, start = end, stop
            self._checkpoint()
        self._runs[-2:] = [_Frequencies(*map(np.concatenate, zip(*parts, strict=True)))]
        self._merging = 0


def _part(run: _Frequencies, start: int, stop: int) -> _Frequencies:
    return _Frequencies(run.keys[start:stop], run.rows[start:stop])


def _merged(one: _Frequencies, other: _Frequencies) -> _Frequencies:
    if not len(one.keys):
        return other
    at = np.searchsorted(one.keys, other.keys)
    known = one.keys.take(at, mode="clip") == other.keys
    rows = one.rows.copy()
    rows[at[known]] += other.rows[known]
    fresh = at[~known]
    return _Frequencies(np.insert(one.keys, fresh, other.keys[~known]), np.insert(rows, fresh, other.rows[~known]))


def _selected_terms(
    words: list[str], keys: NDArray[np.uint64], frequencies: NDArray[np.int32], n_rows: int, options: TextOptions, checkpoint: Checkpoint
) -> TextTerms:
    """The most frequent of the terms, in their order. ``keys`` number words in order of first sight."""
    used, keys = _renumbered(words, keys, checkpoint)
    order = np.argsort(keys, kind="stable")
    keys, frequencies = keys[order], frequencies[order]
    checkpoint()
    if len(keys) > options.max_terms:
        kept = np.sort(np.argsort(-frequencies, kind="stable")[: options.max_terms])
        frequencies = frequencies[kept]
        checkpoint()
        used, keys = _renumbered(used, keys[kept], checkpoint)
    return TextTerms(used, keys, log(np.asarray((1.0 + n_rows) / (1.0 + frequencies), np.float64)) + 1.0, options.ngrams)


def _renumbered(words: list[str], keys: NDArray[np.uint64], checkpoint: Checkpoint) -> tuple[list[str], NDArray[np.uint64]]:
    """The words of these terms, sorted, and the terms by the places of their words there."""
    first, second = words_in(keys)
    used = np.zeros(len(words) + 1, bool)
    used[first] = used[second] = True
    # the last place is that of no word
    used[-1] = False
    checkpoint()
    ordered = sorted(np.flatnonzero(used).tolist(), key=words.__getitem__)
    checkpoint()
    places = np.full(len(words) + 1, UNKNOWN)
    places[ordered] = np.arange(len(ordered))
    found = [words[number] for number in ordered], key_of(places[first], places[second])
    checkpoint()
    return found
