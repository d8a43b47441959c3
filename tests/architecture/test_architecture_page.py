"""What docs/architecture.md says of the rooms is what the contracts check, and what it names exists."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("app", "workers", "core")
LINKED = re.compile(r"`((?:app|workers|core)/[\w/]+(?:\.py)?/?)`")
NAMED = re.compile(r"`([A-Z]\w+)\.(\w+)`")


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/architecture.md").read_text()


def rooms_of(page: str) -> dict[str, list[set[str]]]:
    """The lines of each column of the diagram."""
    block = page.split("## The order of rooms")[1].split("```")[1].strip("\n").splitlines()
    starts = [block[0].index(package) for package in PACKAGES]
    columns: dict[str, list[set[str]]] = {}
    for package, start, stop in zip(PACKAGES, starts, [*starts[1:], None], strict=True):
        cells = [line[start:stop].split() for line in block[2:]]
        columns[package] = [set(cell) for cell in cells if cell]
    return columns


def test_the_diagram_shows_the_order_that_is_checked(repository: Path, page: str) -> None:
    settings: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"]
    checked = {
        contract["containers"][0]: [set(layer.split(" | ")) for layer in contract["layers"]]
        for contract in settings["contracts"]
        if contract["type"] == "layers" and contract.get("containers", [""])[0] in PACKAGES
    }
    assert rooms_of(page) == checked


def test_the_diagram_shows_every_room(repository: Path, page: str) -> None:
    for package, lines in rooms_of(page).items():
        there = {path.stem for path in (repository / package).iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
        assert set().union(*lines) == there - {"__init__"}


def test_the_files_that_it_names_exist(repository: Path, page: str) -> None:
    paths = set(LINKED.findall(page))
    assert len(paths) > 30
    assert [path for path in sorted(paths) if not (repository / path).exists()] == []


def test_the_classes_and_functions_that_it_names_exist(repository: Path, page: str) -> None:
    sources = [path.read_text() for package in PACKAGES for path in (repository / package).rglob("*.py")]
    names = set(NAMED.findall(page))
    assert len(names) > 5
    assert [
        f"{owner}.{name}" for owner, name in sorted(names) if not any(f"class {owner}" in text and f"def {name}(" in text for text in sources)
    ] == []


def test_its_settings_exist(repository: Path, page: str) -> None:
    settings = (repository / "docs/running.md").read_text()
    assert [name for name in re.findall(r"HALFMOON_\w+(?<!_)", page) if name not in settings] == []


def test_its_lines_are_short(page: str) -> None:
    assert [line for line in page.splitlines() if len(line) > 120 and not line.startswith("|")] == []


def test_the_check_of_the_diagram_can_fail(page: str) -> None:
    assert rooms_of(page.replace("upkeep  ", "attic   ")) != rooms_of(page)


def test_decisions_are_numbered_in_turn(repository: Path) -> None:
    index, records = (repository / "docs/decisions/README.md").read_text(), sorted((repository / "docs/decisions").glob("[0-9]*.md"))
    assert [record.name for record in records if f"({record.name})" not in index] == []
    assert [(int(record.name[:4]), record.read_text().split(".")[0]) for record in records] == [(n, f"# {n}") for n in range(1, len(records) + 1)]
