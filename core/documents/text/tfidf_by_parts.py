"""Fits TF-IDF to texts with more terms than memory holds: counts parts of the texts, and merges the counts by buckets.

Words are counted first. A term occurs in no more documents than each of its words. So pairs are counted of those words
alone that are in enough documents; and where more words are than ``max_terms``, only of those in as many documents as
the last of the most frequent ``max_terms``.

The terms, their order and their weights are those of core.documents.text.tfidf_fit, to the bit.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.text.batches import TextCheckpoint
from core.documents.text.mapped_counts import MappedCounter, WordCounts, most_frequent
from core.documents.text.tfidf import TextTerms, key_of
from core.documents.text.tfidf_fit import NumberedWords, no_term_error, selected_terms
from core.documents.vocabulary import string_bytes
from core.options.text import TextOptions
from core.progress import WHOLE, Span

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
