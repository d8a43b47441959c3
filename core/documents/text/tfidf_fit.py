"""Fits TF-IDF: finds the terms of a collection of texts, exactly, in one pass, in memory that grows with distinct terms
alone.

The texts are read in batches. Threads scan spans of a batch side by side, and look up the words that have numbers
already. Then one thread gives numbers to new words, in the order of the texts. At last threads count the documents of
terms, each those of one share of all words at a time.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.text.batches import TextCheckpoint, threads_for
from core.documents.text.counts import Counts, Frequencies, counted
from core.documents.text.tfidf import TextTerms, key_of, unspaced, words_in
from core.documents.text.words import Words
from core.documents.vocabulary import UNKNOWN
from core.errors import InvalidDocuments
from core.numerics.elementary import log
from core.options.text import TextOptions
from core.progress import WHOLE, Checkpoint, Span

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

    words, counts, team = Words(), Counts(options.ngrams > 1), threads_for(texts, threads)
    checkpoint = _steps(note, _ENDING)
    try:
        for _ in counted(texts, words, counts, team, lambda done: note(_COUNTING.position(done))):
            pass
    finally:
        team.close()
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
