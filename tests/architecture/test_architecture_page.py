"""Names in docs/architecture.md exist, and decisions are numbered; tests/setup/test_readme.py checks files."""

import re
from pathlib import Path

import pytest

PACKAGES = ("app", "workers", "storage", "core")
NAMED = re.compile(r"`([A-Z]\w+)\.(\w+)`")


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/architecture.md").read_text()


def test_the_classes_and_functions_that_it_names_exist(repository: Path, page: str) -> None:
    sources = [path.read_text() for package in PACKAGES for path in (repository / package).rglob("*.py")]
    names = set(NAMED.findall(page))
    assert len(names) > 5
    assert [
        f"{owner}.{name}"
        for owner, name in sorted(names)
        if not any(f"class {owner}" in text and f"def {name}(" in text for text in sources)
    ] == []


def test_its_settings_exist(repository: Path, page: str) -> None:
    settings = (repository / "docs/running.md").read_text()
    assert [name for name in re.findall(r"HALFMOON_\w+(?<!_)", page) if name not in settings] == []


def test_decisions_are_numbered_in_turn(repository: Path) -> None:
    index = (repository / "docs/decisions/README.md").read_text()
    records = sorted((repository / "docs/decisions").glob("[0-9]*.md"))
    assert [record.name for record in records if f"({record.name})" not in index] == []
    assert [record.read_text().split(".")[0] for record in records] == [
        f"# {number}" for number in range(1, len(records) + 1)
    ]
    assert [int(record.name[:4]) for record in records] == [*range(1, len(records) + 1)]
