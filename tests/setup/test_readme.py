"""The pages for users know every setting and every algorithm, and lead to each other."""

import re
from pathlib import Path

import pytest

from app.settings import GatewaySettings
from core.registry import OFFERED

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(repository: Path) -> str:
    return (repository / "docs/running.md").read_text().split("## Settings")[1]


@pytest.mark.parametrize("name", GatewaySettings.model_fields)
def test_every_setting_is_in_the_table(name: str, settings: str) -> None:
    field = GatewaySettings.model_fields[name]
    assert field.description, f"{name} has no docstring"
    default = "unset" if field.default is None else f"`{field.default}`"
    assert f"| `HALFMOON_{name.upper()}` | {default} | {' '.join(field.description.split())} |" in settings


def test_the_table_has_no_setting_that_is_no_more(settings: str) -> None:
    listed = [line.split("`")[1] for line in settings.splitlines() if line.startswith("| `HALFMOON_")]
    assert listed == [f"HALFMOON_{name.upper()}" for name in GatewaySettings.model_fields]


def test_the_algorithms_are_those_of_the_registry(repository: Path) -> None:
    section = (repository / "docs/algorithms.md").read_text().split("## Which algorithm")[1].split("\n## ")[0]
    assert [line.split("`")[1] for line in section.splitlines() if line.startswith("| `") and "algorithm" not in line.split("`")[1]] == list(OFFERED)


PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_page_can_be_found() -> None:
    """From the README, by links."""
    found, waiting = set[str](), ["README.md"]
    while waiting:
        page = waiting.pop()
        found.add(page)
        links = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", (ROOT / page).read_text())
        linked = {((ROOT / page).parent / link).resolve().relative_to(ROOT).as_posix() for link in links if "://" not in link}
        waiting += linked - found
    assert {page for page in PAGES if "/decisions/" not in page} <= found
