"""Where terms stand in a text."""

from core.models.explanation import term_spans


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
