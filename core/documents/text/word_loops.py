"""The compiled loops that find the words of texts: a scanner over UTF-8, and a hash table of words.

The table has a power of two slots, of two numbers each; one cache line tells most words::

    slots       upper 32 bits   lower 32 bits       second number
              +---------------+-------------------+--------------------------+
      h mod n | hash h        | number i + 1      | first eight bytes of i   |   0, 0: a free slot
              +---------------+---------+---------+--------------------------+
                                        |
    starts  [ 0 | 5 | ... ]  <----------+   starts[i], starts[i + 1]
    letters [ h e l l o w o r l d ... ]     UTF-8 of all words, one after the other

A word lies in the first slot that was free from its hash on.
"""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled

FOUND_AT, FOUND_LENGTH, FOUND_HASH, FOUND_START = 0, 1, 2, 3
"""columns of the unknown words of a scan: the position among the words, bytes, hash, start among their letters"""
_LOW = np.uint64(2**32 - 1)
_HALF, _ONE = np.uint64(32), np.uint64(1)
_HEAD = 8
"""bytes of a word in its slot"""


@compiled
def scan_texts(
    indptr: NDArray[np.int64],
    data: NDArray[np.uint8],
    characters: NDArray[np.uint32],
    multiplier: np.uint64,
    slots: NDArray[np.uint64],
    starts: NDArray[np.int64],
    letters: NDArray[np.uint8],
    own_letters: NDArray[np.uint8],
    words: NDArray[np.int32],
    owners: NDArray[np.int32],
    unknown: NDArray[np.int64],
) -> tuple[int, int]:
    """Write the number of each word (−1 if the table does not have it) and its text to ``words`` and ``owners``;
    returns how many words and unknown words there are.

    A word is two or more characters of words in a row. Unknown words are written to ``unknown``, and their letters to
    ``own_letters``, unless ``unknown`` is empty.
    """
    n_words, n_unknown = 0, 0
    kept = np.uintp(0)  # letters before it are those of unknown words
    for row in range(len(indptr) - 1):
        position, stop = np.uintp(indptr[row]), np.uintp(indptr[row + 1])
        # the word under way: its letters lie from ``kept`` to ``end``, and ``mixed`` becomes its hash
        end, n_characters, mixed = kept, 0, multiplier
        while position <= stop:
            # twice the lower case, and 1 more within a word; behind the text 0, which ends its last word
            character = np.uint32(0)
            if position < stop and data[position] < 128:
                character = characters[np.uintp(data[position])]
                position += np.uintp(1)
            else:
                character, position = _decoded(data, position, stop, characters)
            if character & np.uint32(1):  # one more character of the word
                lower = np.uint32(character >> np.uint32(1))
                end = _encode(lower, own_letters, end)
                mixed = (mixed ^ np.uint64(lower)) * multiplier
                mixed ^= mixed >> _HALF
                n_characters += 1
            elif n_characters:  # the word has ended
                if n_characters > 1:
                    tag = mixed & _LOW
                    number = _find(slots, starts, letters, own_letters, kept, end, tag)
                    words[n_words], owners[n_words] = number, row
                    if number < 0 and len(unknown):
                        unknown[n_unknown, FOUND_AT], unknown[n_unknown, FOUND_LENGTH] = n_words, np.int64(end - kept)
                        unknown[n_unknown, FOUND_HASH], unknown[n_unknown, FOUND_START] = np.int64(tag), np.int64(kept)
                        n_unknown += 1
                        kept = end  # its letters stay
                    n_words += 1
                end, n_characters, mixed = kept, 0, multiplier
    return n_words, n_unknown


@compiled
def _decoded(
    data: NDArray[np.uint8], position: np.uintp, stop: np.uintp, characters: NDArray[np.uint32]
) -> tuple[np.uint32, np.uintp]:
    """The entry of the character of several bytes at a position, and the next position.

    Of what is not UTF-8 nothing is read beyond the end.
    """
    lead = np.uint32(data[position]) if position < stop else np.uint32(0)
    length = 4
    if lead < 0xE0:
        length = 2
    elif lead < 0xF0:
        length = 3
    if lead < 0xC0 or position + np.uintp(length) > stop:
        return np.uint32(0), position + np.uintp(1)
    code = lead & np.uint32(0xFF >> (length + 1))
    for step in range(1, length):
        code = (code << np.uint32(6)) | np.uint32(data[position + np.uintp(step)] & np.uint8(0x3F))
    return characters[np.uintp(code)] if code < len(characters) else np.uint32(0), position + np.uintp(length)


@compiled
def _encode(code: np.uint32, out: NDArray[np.uint8], position: np.uintp) -> np.uintp:
    """Write a character in UTF-8; returns the next position."""
    if code < 0x80:
        out[position] = code
        return position + np.uintp(1)
    length = 4
    if code < 0x800:
        length = 2
    elif code < 0x10000:
        length = 3
    for place in range(length - 1, 0, -1):
        out[position + np.uintp(place)] = np.uint32(0x80) | (code & np.uint32(0x3F))
        code >>= np.uint32(6)
    out[position] = np.uint32((0xF00 >> length) & 0xFF) | code
    return position + np.uintp(length)


@compiled
def _find(
    slots: NDArray[np.uint64],
    starts: NDArray[np.int64],
    letters: NDArray[np.uint8],
    own_letters: NDArray[np.uint8],
    start: np.uintp,
    end: np.uintp,
    tag: np.uint64,
) -> int:
    """The number of a word, or −1."""
    last, head = np.uint64(len(slots) - 1), _head(own_letters, start, end)
    place = tag & last
    while slots[place, 0] != 0:
        if slots[place, 0] >> _HALF == tag and slots[place, 1] == head:
            number = np.uintp((slots[place, 0] & _LOW) - _ONE)
            if end - start < np.uintp(_HEAD):  # no word has a byte of 0
                return int(number)
            first = np.uintp(starts[number])
            length = np.uintp(starts[number + np.uintp(1)]) - first
            same = length == end - start
            k = np.uintp(_HEAD)
            while same and k < length:
                same = letters[first + k] == own_letters[start + k]
                k += np.uintp(1)
            if same:
                return int(number)
        place = (place + _ONE) & last
    return -1


@compiled
def number_words(
    own_letters: NDArray[np.uint8],
    unknown: NDArray[np.int64],
    done: int,
    words: NDArray[np.int32],
    slots: NDArray[np.uint64],
    starts: NDArray[np.int64],
    letters: NDArray[np.uint8],
    count: int,
) -> tuple[int, int]:
    """Give numbers to the unknown words of a scan from number ``done`` on, and write them to ``words``; ``count`` words
    have one already.

    Ends where there is no room. Returns how many unknown words are done, and how many words have a number.
    """
    last = np.uint64(len(slots) - 1)
    while done < len(unknown):
        tag, start, length = (
            np.uint64(unknown[done, FOUND_HASH]),
            np.uintp(unknown[done, FOUND_START]),
            unknown[done, FOUND_LENGTH],
        )
        number = _find(slots, starts, letters, own_letters, start, start + np.uintp(length), tag)
        if number < 0:
            if 2 * count >= len(slots) or count + 1 >= len(starts) or starts[count] + length > len(letters):
                break
            number = count
            for k in range(length):
                letters[starts[count] + k] = own_letters[start + np.uintp(k)]
            starts[count + 1] = starts[count] + length
            count += 1
            _place(slots, last, tag << _HALF | np.uint64(count), _head(own_letters, start, start + np.uintp(length)))
        words[unknown[done, FOUND_AT]] = number
        done += 1
    return done, count


@compiled
def _head(letters: NDArray[np.uint8], start: np.uintp, end: np.uintp) -> np.uint64:
    """The first bytes of a word as a number."""
    head = np.uint64(0)
    for k in range(start, min(end, start + np.uintp(_HEAD))):
        head = (head << np.uint64(8)) | np.uint64(letters[k])
    return head


@compiled
def _place(slots: NDArray[np.uint64], last: np.uint64, slot: np.uint64, head: np.uint64) -> None:
    place = (slot >> _HALF) & last
    while slots[place, 0] != 0:
        place = (place + _ONE) & last
    slots[place, 0], slots[place, 1] = slot, head


@compiled
def move_slots(slots: NDArray[np.uint64], larger: NDArray[np.uint64]) -> None:
    """Copy a table to an empty one."""
    last = np.uint64(len(larger) - 1)
    for k in range(len(slots)):
        if slots[k, 0] != 0:
            _place(larger, last, slots[k, 0], slots[k, 1])
