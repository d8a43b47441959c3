"""Fits TF-IDF: finds the terms of a collection of texts, exactly, in one pass, in memory that grows with distinct terms
alone.

The texts are read in batches. Threads scan spans of a batch side by side, and look up the words that have numbers
already. Then one thread gives numbers to new words, in the order of the texts. At last threads count the documents of
terms, each those of one share of all words at a time.

Texts with more terms than memory holds are counted by parts, and the counts merged by buckets. Words are counted first.
A term occurs in no more documents than each of its words. So pairs are counted of those words alone that are in enough
documents; and where more words are than ``max_terms``, only of those in as many documents as the last of the most
frequent ``max_terms``. The terms, their order and their weights are the same, to the bit.

The rows of a collection are read by compiled loops on all threads: to the bits of ``TextTerms.read``, in a small part
of its time.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.batches import TextCheckpoint, batches, threads_for
from core.documents.text.counts import Counts, Frequencies, MappedCounter, WordCounts, counted, most_frequent
from core.documents.text.term_loops import DIGITS, place_terms, weigh_texts
from core.documents.text.tfidf import SMALL_LOGS, TextTerms, key_of, unspaced, words_in
from core.documents.text.words import Words, drawn_multiplier
from core.documents.vocabulary import UNKNOWN, string_bytes
from core.errors import InvalidDocuments
from core.numerics.elementary import log
from core.options.text import TextOptions
from core.progress import WHOLE, Checkpoint, Span


def weighed(
    texts: TextRows, terms: TextTerms, report: TextCheckpoint, threads: int | None = None
) -> Iterator[SparseRows]:
    """The rows of the texts, in parts, in order. ``threads``: how many; None: one a core."""
    reader, done = _Reader(terms), 0.0

    def checkpoint() -> None:
        report(done, reader.nbytes)

    with closing(threads_for(texts, threads)) as team:
        for batch in batches(texts, team.count):
            found: dict[int, SparseRows] = {}

            def read(start: int, stop: int, found: dict[int, SparseRows] = found) -> None:
                found[start] = reader.read(texts.between(start, stop))

            team.side_by_side([partial(read, *span) for span in batch], checkpoint)
            yield from (found[start] for start, _ in batch)
            done = batch[-1][1] / texts.n_rows
            checkpoint()


class _Reader:
    """Reads texts by tables of words and terms. Threads may read side by side."""

    def __init__(self, terms: TextTerms) -> None:
        self._words, self._pairs, self._idf = Words.of(TextRows.of(terms.words)), terms.ngrams > 1, terms.idf
        self._multiplier = drawn_multiplier()
        self._table = np.zeros((2 * len(terms.keys) + 1, 2), np.uint64)
        place_terms(terms.keys, self._table, self._multiplier)
        self.nbytes = (
            self._words.nbytes
            + self._table.nbytes
            + terms.keys.nbytes
            + terms.idf.nbytes
            + sum(map(string_bytes, terms.words))
        )
        """Memory held, terms included."""

    def read(self, texts: TextRows) -> SparseRows:
        """The rows of these texts."""
        words, owners, *_ = self._words.scan(texts, keep_unknown=False)
        most = (2 if self._pairs else 1) * len(words)
        columns, spare = np.empty(most, np.uint32), np.empty(most, np.uint32)
        weights, values = np.empty(most), np.empty(most, np.float32)
        counts, indptr = np.empty(DIGITS, np.int64), np.zeros(texts.n_rows + 1, np.int64)
        tables = self._table, self._multiplier, self._idf, SMALL_LOGS
        weigh_texts(words, owners, self._pairs, *tables, columns, spare, weights, counts, indptr, values)
        return SparseRows(indptr, columns[: indptr[-1]].copy(), values[: indptr[-1]].copy(), len(self._idf))


_COUNTING, _ENDING = WHOLE.between(0.0, 0.85), WHOLE.between(0.85, 1.0)
"""parts of the work: to count terms, and to choose and sort them"""

SPACES = "put spaces between the words, where now whole clauses count as one, or send named features"


def fit_terms(texts: TextRows, options: TextOptions, report: TextCheckpoint, threads: int | None = None) -> TextTerms:
    """The terms that occur in ``min_documents`` of the texts, at most ``max_terms``: those in most texts, of equals the
    first in order.

    ``threads``: how many; None: one a core. Raises InvalidDocuments if no term does.
    """
    selected = 0

    def note(done: float) -> None:
        report(done, words.nbytes + counts.nbytes + selected)

    words, counts = Words(), Counts(options.ngrams > 1)
    checkpoint = _steps(note, _ENDING)
    with closing(threads_for(texts, threads)) as team:
        for _ in counted(texts, words, counts, team, lambda done: note(_COUNTING.position(done))):
            pass
    n_terms, found = counts.n_terms, list[Frequencies]()
    for share in counts.often(options.min_documents):
        found.append(share)
        selected += sum(array.nbytes for array in share)
        checkpoint()
    keys, frequencies = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    if not len(keys):
        raise no_term_error(n_terms, texts, options)
    terms = selected_terms(NumberedWords(words.text, words.count), keys, frequencies, texts.n_rows, options, checkpoint)
    note(1.0)
    return terms


def _steps(note: Callable[[float], None], span: Span) -> Checkpoint:
    """Notes progress of work with few steps of unknown number: each does a tenth of the rest."""
    done = 0.0

    def checkpoint() -> None:
        nonlocal done
        done += (1.0 - done) / 10
        note(span.position(done))

    return checkpoint


def no_term_error(n_terms: int, texts: TextRows, options: TextOptions) -> InvalidDocuments:
    """The error of texts without a term in enough documents, of ``n_terms`` in all."""
    if not n_terms:
        return InvalidDocuments(
            f"none of the {texts.n_rows} documents has a word: two or more letters or digits in a row"
        )
    remedy = SPACES if unspaced(texts) else "send more text, or lower text.min_documents"
    return InvalidDocuments(
        f"no word occurs in {options.min_documents} or more of the {texts.n_rows} documents; {remedy}"
    )


class NumberedWords(NamedTuple):
    """Words by number."""

    text: Callable[[int], str]
    """tells a word by its number"""
    n_words: int


def selected_terms(
    words: NumberedWords,
    keys: NDArray[np.uint64],
    frequencies: NDArray[np.int32],
    n_rows: int,
    options: TextOptions,
    checkpoint: Checkpoint,
) -> TextTerms:
    """The most frequent of the terms, in their order. ``keys`` may number words in any order."""
    used, keys = _renumbered(words, keys, checkpoint)
    order = np.argsort(keys, kind="stable")
    keys, frequencies = keys[order], frequencies[order]
    checkpoint()
    if len(keys) > options.max_terms:
        kept = np.sort(np.argsort(-frequencies, kind="stable")[: options.max_terms])
        frequencies = frequencies[kept]
        checkpoint()
        used, keys = _renumbered(NumberedWords(used.__getitem__, len(used)), keys[kept], checkpoint)
    return TextTerms(
        used, keys, log(np.asarray((1.0 + n_rows) / (1.0 + frequencies), np.float64)) + 1.0, options.ngrams
    )


def _renumbered(
    words: NumberedWords, keys: NDArray[np.uint64], checkpoint: Checkpoint
) -> tuple[list[str], NDArray[np.uint64]]:
    """The words of these terms, sorted, and the terms by the places of their words there."""
    first, second = words_in(keys)
    used = np.zeros(words.n_words + 1, bool)
    used[first] = used[second] = True
    # the last place is that of no word
    used[-1] = False
    numbers = np.flatnonzero(used)
    checkpoint()
    found = list(map(words.text, numbers.tolist()))
    checkpoint()
    order = sorted(range(len(found)), key=found.__getitem__)
    checkpoint()
    places = np.full(words.n_words + 1, UNKNOWN)
    places[numbers[order]] = np.arange(len(order))
    renumbered = [found[place] for place in order], key_of(places[first], places[second])
    checkpoint()
    return renumbered


_WORDS, _TERMS = Span(0.0, 0.4), Span(0.4, 1.0)


def fit_by_parts(
    counting: Callable[[TextCheckpoint], MappedCounter], texts: TextRows, options: TextOptions, report: TextCheckpoint
) -> TextTerms:
    """See core.documents.text.tfidf_fit.fit_terms.

    ``counting`` makes what counts, and reports to the given checkpoint.
    """
    done, held = 0.0, 0

    def note(share: float, n_bytes: int) -> None:
        nonlocal done
        done = share
        report(share, n_bytes + held)

    counter, found = counting(note), _FrequentWords(options.min_documents, options.max_terms)
    for bucket in counter.words(options.min_documents, _WORDS if options.ngrams > 1 else WHOLE):
        found.add(bucket)
        held = found.nbytes
    if not found.count:
        raise no_term_error(found.n_distinct, texts, options)
    words, counts = found.sorted()
    del found
    word_bytes = held = sum(map(string_bytes, words)) + counts.nbytes
    keys, frequencies = key_of(np.arange(len(words))), counts
    if options.ngrams > 1:
        least = _least_kept(counts, options.min_documents, options.max_terms)
        keys, frequencies = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        for more, often in counter.terms(words, least, options.max_terms, _TERMS):
            keys, frequencies = most_frequent(
                np.concatenate([keys, more]), np.concatenate([frequencies, often]), options.max_terms
            )
            held = word_bytes + keys.nbytes + frequencies.nbytes
    return selected_terms(
        NumberedWords(words.__getitem__, len(words)), keys, frequencies, texts.n_rows, options, lambda: note(done, 0)
    )


def _least_kept(counts: NDArray[np.int32], least: int, most: int) -> int:
    """The least number of documents of a term that is kept, where no more than ``most`` are kept beside these words."""
    return int(np.sort(counts, kind="stable")[-most]) if len(counts) >= most else least


class _FrequentWords:
    """The words of all buckets that may belong to a term that is kept."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most
        self._words, self._counts = TextRows.of([]), np.zeros(0, np.int32)
        self.n_distinct = 0
        """Number of all words, rare ones included."""

    @property
    def count(self) -> int:
        """Number of words."""
        return len(self._counts)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._words.indptr.nbytes + self._words.data.nbytes + self._counts.nbytes

    def add(self, bucket: WordCounts) -> None:
        """Add the words of a bucket."""
        self.n_distinct += bucket.n_distinct
        words, counts = TextRows.joined([self._words, bucket.words]), np.concatenate([self._counts, bucket.counts])
        kept = np.flatnonzero(counts >= _least_kept(counts, self._least, self._most))
        self._words, self._counts = words if len(kept) == len(counts) else words.taken(kept), counts[kept]

    def sorted(self) -> tuple[list[str], NDArray[np.int32]]:
        """The words in their order, and in how many documents each is."""
        words = list(self._words)
        order = sorted(range(len(words)), key=words.__getitem__)
        return [words[place] for place in order], self._counts[order]
