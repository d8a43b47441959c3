"""TF-IDF: texts as rows of weights of terms.

The terms of a text are its words (two or more letters, digits or underscores in a row, in lower case) and, unless
``ngrams`` is 1, pairs of consecutive words. A term that occurs ``t`` times in a document and in ``d`` of the ``n``
documents has the weight::

    (1 + ln t) · (1 + ln((1 + n) / (1 + d)))

and the weights of a document are scaled to length 1 (Salton and Buckley, 1988, with the smoothing of scikit-learn).
These are the weights of scikit-learn's ``TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)``, but for the last
bit, which the processor decides there and not here. A test compares them.

The text of a pair is not stored. A term is one number: the upper 32 bits are the place of its first word among the
sorted words, the lower ones 0 or the place of its second word plus 1. No character of a word sorts before a space, so
the order of the numbers is that of the terms as strings.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import FIELDS, Rows, TextRows, without_parts
from core.documents.part_columns import PartColumns
from core.documents.rows import SparseRows
from core.documents.vocabulary import UNKNOWN, Places, Read, Vocabulary, number_unknown, wrong_kind
from core.numerics.elementary import log

_WORD = re.compile(r"\b\w\w+\b")
_SPACE = re.compile(r"\s")
_CLAUSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{6}")
"""characters that hardly a single word of Chinese or Japanese has"""
_LOOKED_AT = 200
"""texts that are sampled"""
_PIECE = 1 << 16
_SECOND = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
SMALL_LOGS = log(np.maximum(np.arange(256.0), 1.0))


@dataclass(frozen=True)
class TextTerms(Vocabulary):
    """Columns that are terms, in the order of their strings."""

    kind = "text"
    words: Sequence[str]
    """words of the terms, sorted"""
    keys: NDArray[np.uint64]
    """shape (n_terms,), ascending: the terms as numbers"""
    idf: NDArray[np.float64]
    """shape (n_terms,): inverse document frequencies"""
    ngrams: int
    """most words of a term: 1 or 2"""

    @property
    def nbytes(self) -> int:
        """See Vocabulary."""
        return self._places.nbytes + self._of_words.nbytes + self.keys.nbytes + self.idf.nbytes

    def read(self, rows: Rows) -> Read:
        """See Vocabulary."""
        rows = without_parts(rows)
        if not isinstance(rows, TextRows):
            raise wrong_kind(self.kind, rows)
        words, owners = words_of(rows, self._places)
        n_unknown = int(np.count_nonzero(words == UNKNOWN))
        columns, n_terms = self._of_words[words], max(1, len(self.keys))
        if self.ngrams > 1:
            # an unknown word has a number that no term begins with; a second one would look like none
            follow = (words[1:] != UNKNOWN) & (owners[1:] == owners[:-1])
            columns = np.concatenate([columns, self._columns(key_of(words[:-1], words[1:])[follow])])
            owners = np.concatenate([owners, owners[1:][follow]])
        known = columns != UNKNOWN
        cells, counts = np.unique(owners[known] * n_terms + columns[known], return_counts=True)
        indptr = np.searchsorted(cells, n_terms * np.arange(rows.n_rows + 1))
        owners, columns = np.divmod(cells, n_terms)
        weights = (_log_counts(counts) + 1.0) * self.idf[columns]
        # summed in sequence, as scikit-learn does
        lengths = np.sqrt(np.bincount(owners, weights * weights))
        values = (weights / lengths[owners]).astype(np.float32)
        found = SparseRows(indptr, columns.astype(np.uint32), values, len(self.keys))
        return Read(found, n_unknown, len(words))

    def columns_of(self, other: Vocabulary) -> NDArray[np.int64]:
        """See Vocabulary."""
        assert isinstance(other, TextTerms)
        places = np.fromiter(map(self._places.__getitem__, other.words), np.int64, len(other.words))
        first, second = words_in(other.keys)
        keys = key_of(places[first], np.where(second == UNKNOWN, UNKNOWN, places[second]))
        lost = (places[first] == UNKNOWN) | ((second != UNKNOWN) & (places[second] == UNKNOWN))
        return number_unknown(np.where(lost, UNKNOWN, self._columns(keys)), len(self.keys))

    def named(self, columns: NDArray[np.integer[Any]]) -> list[str]:
        """See Vocabulary."""
        first, second = words_in(self.keys[columns])
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        return [self.words[one] if two == UNKNOWN else f"{self.words[one]} {self.words[two]}" for one, two in pairs]

    @property
    def strings(self) -> Sequence[str]:
        """The words."""
        return self.words

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """See Vocabulary."""
        return {"term_keys": self.keys, "term_idf": self.idf}, {
            "kind": self.kind,
            "words": list(self.words),
            "ngrams": self.ngrams,
        }

    def facts(self) -> dict[str, str | int]:
        """The number of terms, and of their words."""
        return {"n_terms": len(self.keys), "n_words": len(self.words)}

    def _columns(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """shape (n,): the columns of terms as numbers, or UNKNOWN."""
        if not len(self.keys):
            return np.full(len(keys), UNKNOWN)
        # a search in order reads near places of the table one after the other, and takes a sixth of the time
        order, position = np.argsort(keys, kind="stable"), np.empty(len(keys), np.int64)
        position[order] = np.searchsorted(self.keys, keys[order])
        return np.where(self.keys.take(position, mode="clip") == keys, position, UNKNOWN)

    @cached_property
    def _of_words(self) -> NDArray[np.int64]:
        """shape (n_words + 1,): the column of each word as a term, or UNKNOWN, as the last place has, too."""
        return np.append(self._columns(key_of(np.arange(len(self.words)))), UNKNOWN)

    @cached_property
    def _places(self) -> Places:
        return Places.of(self.words)


def class_names(classes: Sequence[str | int], vocabulary: Vocabulary) -> SparseRows | None:
    """The names of classes as rows of the terms that are in them; None where no columns are terms of text."""
    terms = vocabulary.of_part(FIELDS["text"]) if isinstance(vocabulary, PartColumns) else vocabulary
    if not isinstance(terms, TextTerms):
        return None
    # an underscore stands between words in names, and within words in texts
    return vocabulary.read(TextRows.of([str(each).replace("_", " ") for each in classes])).rows


def _log_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Logarithms of counts. Nearly all are small, and looked up."""
    found = SMALL_LOGS.take(counts, mode="clip")
    large = counts >= len(SMALL_LOGS)
    if large.any():
        found[large] = log(counts[large].astype(np.float64))
    return found


def words_of(rows: TextRows, numbers: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ``numbers`` of the words of the texts, in sequence, and the row of each; both of shape (n_words,)."""
    found, lengths = array("q"), []
    for text in rows:
        before = len(found)
        for piece in _pieces(text):
            found.extend(map(numbers.__getitem__, _WORD.findall(piece.lower())))
        lengths.append(len(found) - before)
    return np.array(found, np.int64), np.repeat(np.arange(rows.n_rows), lengths)


def unspaced(rows: TextRows) -> bool:
    """Whether many words of these texts are whole clauses, as in Chinese and Japanese without spaces."""
    texts = rows.taken(np.unique(np.linspace(0, rows.n_rows - 1, min(_LOOKED_AT, rows.n_rows)).astype(np.int64)))
    words = [word for text in texts for word in _WORD.findall(text[:_PIECE])]
    return sum(_CLAUSE.search(word) is not None for word in words) > len(words) / 4


def key_of(first: NDArray[np.int64], second: NDArray[np.int64] | int = UNKNOWN) -> NDArray[np.uint64]:
    """Terms as numbers, shape (n,); the second word is UNKNOWN where there is none."""
    return (first.astype(np.uint64) << _SECOND) | np.asarray(second + 1).astype(np.uint64)


def words_in(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The inverse of ``key_of``: first and second words of terms, the second UNKNOWN where there is none."""
    return (keys >> _SECOND).astype(np.int64), (keys & _LOW).astype(np.int64) - 1


def _pieces(text: str) -> Iterator[str]:
    """The text, cut at white space if it is long, so that no other thread waits for the end of one search.

    No word is cut.
    """
    start = 0
    while len(text) - start > _PIECE:
        space = _SPACE.search(text, start + _PIECE)
        if space is None:
            break
        yield text[start : space.start()]
        start = space.start()
    yield text[start:]
