"""Characters as Python has them."""

import re

import numpy as np

from core.documents.kinds import TextRows
from core.documents.text.words import LOWER_GROWTH, character_table, lowered_by_character


def test_the_table_is_python_s_own() -> None:
    table = character_table()
    word = re.compile(r"\w")
    for code in [*range(0x3000), *range(0x3000, 0x110000, 97)]:
        lower, entry = chr(code).lower(), int(table[code])
        if code != 0x130:  # becomes two characters
            assert (chr(entry >> 1), entry & 1) == (lower, int(word.match(lower) is not None))


def test_what_is_in_lower_case_stays_as_it_is() -> None:
    lower = character_table() >> np.uint32(1)
    np.testing.assert_array_equal(character_table()[lower] >> np.uint32(1), lower)


def test_the_growth_of_a_character_is_bounded() -> None:
    lower = character_table() >> np.uint32(1)
    changed = np.flatnonzero(lower != np.arange(len(lower))).tolist()
    assert len(changed) > 1000
    assert max(len(chr(lower[code]).encode()) / len(chr(code).encode()) for code in changed) <= LOWER_GROWTH


def test_texts_are_copied_only_where_characters_depend_on_others() -> None:
    plain = TextRows.of(["Été", "ÖL", "ab"])
    assert lowered_by_character(plain) is plain
    rows = TextRows.of(["AB", "ΟΔΟΣ ΟΣΑ", "İst"])
    assert list(lowered_by_character(rows.between(1, 3))) == ["οδος οσα", "i\u0307st"]
    assert list(lowered_by_character(rows.between(0, 1))) == ["AB"]
