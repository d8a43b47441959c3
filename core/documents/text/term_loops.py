"""The compiled loops over terms: a hash table in which the documents of each term are counted, one of the columns of
terms, and the rows of texts.

A term is a number, as in core.documents.text.tfidf. Tables are of shape (size, 2), for any size below 2³²: a term, and
what belongs to it, which is not 0. A term lies in the first place that was free from its hash on.
"""

import math

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled, log_of

_LOW = np.uint64(2**32 - 1)
_HALF, _ONE = np.uint64(32), np.uint64(1)
DIGITS = 256


@compiled
def _place_of(table: NDArray[np.uint64], multiplier: np.uint64, term: np.uint64) -> np.uintp:
    """The place of a term, or a free one for it."""
    mixed = term * multiplier
    mixed ^= mixed >> _HALF
    size = np.uintp(len(table))
    place = np.uintp(((mixed & _LOW) * np.uint64(size)) >> _HALF)
    while table[place, 1] != 0 and table[place, 0] != term:
        place += np.uintp(1)
        if place == size:
            place = np.uintp(0)
    return place


@compiled
def count_terms(
    words: NDArray[np.int32],
    owners: NDArray[np.int32],
    first_text: int,
    done: int,
    share: tuple[int, int],
    pairs: bool,
    table: NDArray[np.uint64],
    multiplier: np.uint64,
    n_terms: int,
    most: int,
) -> tuple[int, int]:
    """Count the documents of terms in the words of some texts, from word ``done`` on; the table has ``n_terms`` of at
    most ``most`` terms.

    Of all terms those are counted whose first word leaves ``share[0]`` when divided by ``share[1]``, a power of two. A
    word of −1 is in none of them. In the table a term has the number of its documents in the upper 32 bits, and the
    last of them, plus 1, in the lower ones. Ends when the table is full. Returns how many words are done, and how many
    terms the table has.
    """
    rest, mask = share[0], share[1] - 1
    while done < len(words):
        word = words[done]
        if word >= 0 and word & mask == rest:
            if n_terms + 2 > most:
                break
            text = np.uint64(first_text + owners[done] + 1)
            term = np.uint64(word) << _HALF
            n_terms += _count(table, multiplier, term, text)
            if pairs and done + 1 < len(words) and owners[done + 1] == owners[done] and words[done + 1] >= 0:
                n_terms += _count(table, multiplier, term | np.uint64(words[done + 1] + 1), text)
        done += 1
    return done, n_terms


@compiled
def _count(table: NDArray[np.uint64], multiplier: np.uint64, term: np.uint64, text: np.uint64) -> int:
    """Count a document of a term; returns 1 if the term is new."""
    place = _place_of(table, multiplier, term)
    found = table[place, 1]
    if found & _LOW != text:
        table[place, 0] = term
        table[place, 1] = ((found >> _HALF) + _ONE) << _HALF | text
    return 1 if found == 0 else 0


@compiled
def move_terms(table: NDArray[np.uint64], larger: NDArray[np.uint64], multiplier: np.uint64) -> None:
    """Copy a table to an empty one."""
    for k in range(len(table)):
        if table[k, 1] != 0:
            place = _place_of(larger, multiplier, table[k, 0])
            larger[place, 0], larger[place, 1] = table[k, 0], table[k, 1]


@compiled
def place_terms(terms: NDArray[np.uint64], table: NDArray[np.uint64], multiplier: np.uint64) -> None:
    """Enter terms, with their columns plus 1, into an empty table."""
    for column in range(len(terms)):
        place = _place_of(table, multiplier, terms[column])
        table[place, 0], table[place, 1] = terms[column], np.uint64(column + 1)


@compiled
def weigh_texts(
    words: NDArray[np.int32],
    owners: NDArray[np.int32],
    pairs: bool,
    table: NDArray[np.uint64],
    multiplier: np.uint64,
    idf: NDArray[np.float64],
    small_logs: NDArray[np.float64],
    columns: NDArray[np.uint32],
    spare: NDArray[np.uint32],
    weights: NDArray[np.float64],
    counts: NDArray[np.int64],
    indptr: NDArray[np.int64],
    values: NDArray[np.float32],
) -> None:
    """Write the rows of texts, given their words: their ends to ``indptr``, shape (n_texts + 1,), their columns to
    ``columns``, and to ``values``.

    To the bits of core.documents.text.tfidf. ``columns``, ``spare``, ``weights`` and ``values`` have room for all
    occurrences of terms, and ``counts`` for DIGITS.
    """
    position, n_kept = 0, 0
    for text in range(len(indptr) - 1):
        n_found = n_kept
        while position < len(words) and owners[position] == text:
            if words[position] >= 0:
                term = np.uint64(words[position]) << _HALF
                n_found = _look_up(table, multiplier, term, columns, n_found)
                if pairs and position + 1 < len(words) and owners[position + 1] == text and words[position + 1] >= 0:
                    n_found = _look_up(table, multiplier, term | np.uint64(words[position + 1] + 1), columns, n_found)
            position += 1
        _sort(columns, n_kept, n_found, spare, len(idf), counts)
        first, squares, k = n_kept, 0.0, n_kept
        while k < n_found:
            column, count = columns[k], 0
            while k < n_found and columns[k] == column:
                count += 1
                k += 1
            log = small_logs[count] if count < len(small_logs) else log_of(float(count))
            weight = (log + 1.0) * idf[column]
            squares += weight * weight
            columns[n_kept], weights[n_kept] = column, weight
            n_kept += 1
        length = math.sqrt(squares)
        for k in range(first, n_kept):
            values[k] = weights[k] / length
        indptr[text + 1] = n_kept


@compiled
def _look_up(
    table: NDArray[np.uint64], multiplier: np.uint64, term: np.uint64, columns: NDArray[np.uint32], n_found: int
) -> int:
    """Write the column of a term, if it has one; returns how many are written."""
    found = table[_place_of(table, multiplier, term), 1]
    if found == 0:
        return n_found
    columns[n_found] = found - _ONE
    return n_found + 1


@compiled
def _sort(
    numbers: NDArray[np.uint32], first: int, stop: int, spare: NDArray[np.uint32], bound: int, counts: NDArray[np.int64]
) -> None:
    """Sort a range of numbers below ``bound``, digit by digit.

    ``spare`` has room for them, and ``counts`` for the 256 digits.
    """
    shift = np.uint32(0)
    while bound >> shift > 0:
        for digit in range(len(counts)):
            counts[digit] = 0
        for k in range(first, stop):
            counts[(numbers[k] >> shift) & np.uint32(255)] += 1
        before = 0
        for digit in range(len(counts)):
            count = counts[digit]
            counts[digit] = before
            before += count
        for k in range(first, stop):
            place = np.intp((numbers[k] >> shift) & np.uint32(255))
            spare[counts[place]] = numbers[k]
            counts[place] += 1
        for k in range(stop - first):
            numbers[first + k] = spare[k]
        shift += np.uint32(8)
