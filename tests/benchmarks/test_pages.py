"""Pages of figures with a part that is made anew, and notes that are a part of one."""

from pathlib import Path

import pytest

from benchmarks import base
from benchmarks.base import wrapped


def test_a_section_takes_the_place_of_the_former_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nBefore.\n\n## A\n\n### within\n\nold\n\n## B\n\nb\n")
    for text in ("## A\n\nnew\n", "## C\n\nc\n"):
        base.put_section("page.md", text)
    assert page.read_text() == "# A page\n\nBefore.\n\n## A\n\nnew\n\n## B\n\nb\n\n## C\n\nc\n"


def test_notes_that_are_written_by_hand_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "DOCS", tmp_path)
    base.write("page.md", "# A page\n\n## A\n\nold\n")
    notes = "\n## What to make of it, as of today\n\n- more\n\n### Within\n\nof it\n"
    (tmp_path / "page.md").write_text((tmp_path / "page.md").read_text() + notes)
    base.write("page.md", "# A page\n\n## A\n\nnew\n")
    assert (tmp_path / "page.md").read_text() == "# A page\n\n## A\n\nnew\n" + notes


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
