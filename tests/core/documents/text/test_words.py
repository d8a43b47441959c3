"""Words by number, against Python's regular expressions; characters as Python has them; where terms stand."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from core.documents.kinds import TextRows
from core.documents.text import words as module
from core.documents.text.words import LOWER_GROWTH, Words, character_table, lowered_by_character
from core.models.explanation import term_spans

WORD = re.compile(r"\b\w\w+\b")
unicode_texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=6)


def check(texts: list[str]) -> Words:
    """The numbers of words, and the texts that own them."""
    words = Words()
    scan = words.scan(TextRows.of(texts))
    words.number(scan)
    expected = [(place, word) for place, text in enumerate(texts) for word in WORD.findall(text.lower())]
    assert scan.owners.tolist() == [place for place, _ in expected]
    assert [words.text(number) for number in scan.words.tolist()] == [word for _, word in expected]
    assert list(dict.fromkeys(scan.words.tolist())) == list(range(words.count))
    again = words.scan(TextRows.of(texts), keep_unknown=False)
    np.testing.assert_array_equal(again.words, scan.words)
    return words


@given(texts=unicode_texts)
@example(
    texts=[
        "ΑΣ ΟΔΟΣ",
        "İstanbul",
        "a_b 1٣",
        "日本語",
        "",
        "x",
        "ⱯȺȾȺ ΚΑΙ\u212a",
        "\U00010400\U00010401 \U0001f600\U0001f600",
    ]
)
@profile(max_examples=200, deadline=None)
def test_words_are_those_of_python(texts: list[str]) -> None:
    check(texts)


def test_every_character_of_the_first_planes() -> None:
    codes = [code for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    words = check([" ".join(f"a{chr(code)}b" for code in part) for part in np.array_split(codes, 50)])
    assert words.count > 60_000


def test_tables_grow_and_nothing_is_lost() -> None:
    texts = [" ".join(f"w{number % 30_000}" for number in range(start, start + 400)) for start in range(0, 40_000, 100)]
    words = check([*texts, "x" * 100_000, "ab"])
    assert words.count == 30_002
    assert words.nbytes > 100_000


def test_words_of_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "drawn_multiplier", lambda: np.uint64(0))
    assert check(["ab cd ab ef", "abc abd ab", *(f"w{number}" for number in range(500))]).count == 505


def test_unknown_words_have_no_number() -> None:
    words = Words.of(TextRows.of(["red car"]))
    assert words.scan(TextRows.of(["Red green CAR", "blue"]), keep_unknown=False).words.tolist() == [0, -1, 1, -1]
    scan = words.scan(TextRows.of(["green green red"]))
    words.number(scan)
    assert scan.words.tolist() == [2, 2, 0]
    assert words.text(2) == "green"


def test_bytes_that_are_no_text_are_no_words() -> None:
    """They are refused before they are stored. A damaged file must not make a loop read beyond its end all the same."""
    data = np.array([0xC3, 0x61, 0x20, 0xF0, 0x9F, 0x61, 0x62, 0x80, 0x61, 0x62, 0xFF, 0xE2, 0x82], np.uint8)
    words = Words()
    scan = words.scan(TextRows(np.array([0, 13]), data))
    words.number(scan)
    assert "ab" in {words.text(number) for number in scan.words.tolist()}
    for seed in range(50):
        noise = np.random.default_rng(seed).integers(0, 256, 1000).astype(np.uint8)
        noise[np.isin(noise, [0xC4, 0xCE])] = 0xC3  # where Python's own lower case is asked for
        assert len(Words().scan(TextRows(np.array([0, 500, 1000]), noise)).words) <= 334


def test_words_and_pairs_are_found_in_whatever_case() -> None:
    text = "Free entry: FREE Entry, a free day"
    found = term_spans(text, ["free", "free entry", "entry free", "day", "lunch"])
    assert [[text[start:end] for start, end in spans] for spans in found] == [
        ["Free", "FREE", "free"],
        ["Free entry", "FREE Entry"],
        ["entry: FREE", "Entry, a free"],
        ["day"],
        [],
    ]


def test_characters_are_counted_not_bytes() -> None:
    assert term_spans("😀 École", ["école"]) == [[(2, 7)]]


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
