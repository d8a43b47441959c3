"""The pages for users know every setting and every algorithm, and lead to each other."""

import re
import tomllib
from pathlib import Path

import pytest

from app.settings import GatewaySettings
from core.registry import OFFERED

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_has_every_setting_and_no_other(repository: Path) -> None:
    table = (repository / "docs/running.md").read_text().split("## Settings")[1]
    expected = []
    for name, field in GatewaySettings.model_fields.items():
        assert field.description, f"{name} has no docstring"
        default = "unset" if field.default is None else f"`{field.default}`"
        expected.append(f"| `HALFMOON_{name.upper()}` | {default} | {' '.join(field.description.split())} |")
    assert [line for line in table.splitlines() if line.startswith("| `HALFMOON_")] == expected


def test_the_algorithms_are_those_of_the_registry(repository: Path) -> None:
    section = (repository / "docs/algorithms.md").read_text().split("## Which algorithm")[1].split("\n## ")[0]
    assert [
        line.split("`")[1]
        for line in section.splitlines()
        if line.startswith("| `") and "algorithm" not in line.split("`")[1]
    ] == list(OFFERED)


@pytest.mark.parametrize("package", ["app", "workers", "storage", "core"])
def test_the_rooms_of_contributing_are_those_of_the_contracts(package: str, repository: Path) -> None:
    contracts = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == [package]]
    table = (repository / "CONTRIBUTING.md").read_text().split(f"| `{package}/` |")[1].split("\n\n")[0]
    rooms = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]
    rank = {name: number for number, layer in enumerate(layers) for name in layer.replace("|", " ").split()}
    named = [name for row in rooms for name in row]
    assert sorted(named) == sorted(rank)
    assert [rank[name] for name in named] == sorted(rank.values())


def test_the_two_commands_lead_the_readme(repository: Path) -> None:
    """The first block of commands sets up and runs, and sets up and tests."""
    first = re.findall(r"^```sh\n(.*?)^```", (repository / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    commands = [line.partition("#")[0].split() for line in first.splitlines()]
    assert commands == [["make", "demo"], ["make", "test"]]
    targets = (repository / "Makefile").read_text()
    assert all(f"\n{target}:" in targets for _, target in commands)


PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_prose_are_short(page: str) -> None:
    """Code and tables are as wide as they are."""
    prose = re.sub(r"^```.*?^```|^ *\|.*?$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("page", sorted({*PAGES} - {"CHANGELOG.md"}))
def test_files_that_are_named_exist(page: str) -> None:
    """The changelog may name former files."""
    named = re.findall(
        r"`((?:app|workers|storage|core|tests|benchmarks|docs|openapi)/[\w./-]+)`", (ROOT / page).read_text()
    )
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []


def test_the_readme_lists_every_page(repository: Path) -> None:
    pages = {page for page in PAGES if page.startswith("docs/") and "/decisions/" not in page}
    assert pages <= set(re.findall(r"\]\((docs/[^)#\s]+\.md)", (repository / "README.md").read_text()))
