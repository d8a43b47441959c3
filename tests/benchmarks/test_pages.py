"""Pages of figures of which a part is made anew, and notes that are a part of one."""

from pathlib import Path

import pytest

from benchmarks.base import renewed, wrapped

ORDER = ("One", "Two", "Three")
PAGE = "# Old\n\nhead\n\n## Two\n\n### within\n\n| 2 |\n\n## Three\n\nthree\n"


def test_what_is_not_made_anew_is_kept_and_all_is_in_order() -> None:
    page = renewed(PAGE, "# New\n", ["## Three\n\n3\n", "## One\n\n1"], ORDER)
    assert page == "# New\n\n## One\n\n1\n\n## Two\n\n### within\n\n| 2 |\n\n## Three\n\n3\n"
    assert renewed(page, "# New", [], ORDER) == page


def test_a_page_begins_with_its_first_part() -> None:
    assert renewed("", "# New", ["## Two\n\n2"], ORDER) == "# New\n\n## Two\n\n2\n"


def test_a_part_without_a_place_is_not_lost_in_silence() -> None:
    with pytest.raises(ValueError, match="Four"):
        renewed(PAGE, "# New", ["## Four\n\n4"], ORDER)


def test_prose_is_wrapped_at_sentences_and_nothing_else_is() -> None:
    sentence = f"A sentence {'of words ' * 9}ends."
    table = f"  | {'cell ' * 40}|"
    code = f"```\n{'code ' * 40}\n```"
    page = f"# {'title ' * 30}\n\n- {sentence} {sentence} Short.\n\n{table}\n{code}\n"
    made = wrapped(page)
    assert made.split() == page.split()
    assert made.splitlines()[2:5] == [f"- {sentence}", f"  {sentence} Short.", ""]
    assert all(kept in made for kept in (table, code))
    assert wrapped(made) == made
    assert max(map(len, wrapped("word " * 100).splitlines())) <= 120


@pytest.mark.parametrize(
    ("page", "notes"),
    [("few-labels", "panel/notes.md"), ("learning-curves", "learning-notes.md"), ("engines", "engines-notes.md")],
)
def test_a_page_has_its_notes_as_they_are(repository: Path, page: str, notes: str) -> None:
    text = (repository / "benchmarks" / notes).read_text()
    assert wrapped(text) == text
    published = (repository / f"docs/{page}.md").read_text()
    assert all(part in published for part in text.split("<!-- measured -->\n"))
