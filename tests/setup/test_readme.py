"""The README knows every setting and every algorithm."""

from pathlib import Path

import pytest

from app.settings import GatewaySettings
from core.registry import OFFERED


@pytest.fixture
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text()


@pytest.mark.parametrize("name", GatewaySettings.model_fields)
def test_every_setting_is_in_the_table(name: str, readme: str) -> None:
    field = GatewaySettings.model_fields[name]
    assert field.description, f"{name} has no docstring"
    default = "unset" if field.default is None else f"`{field.default}`"
    assert f"| `HALFMOON_{name.upper()}` | {default} | {' '.join(field.description.split())} |" in readme


def test_the_table_has_no_setting_that_is_no_more(readme: str) -> None:
    listed = [line.split("`")[1] for line in readme.splitlines() if line.startswith("| `HALFMOON_")]
    assert listed == [f"HALFMOON_{name.upper()}" for name in GatewaySettings.model_fields]


def test_the_algorithms_are_those_of_the_registry(readme: str) -> None:
    section = readme.split("## Which algorithm")[1].split("\n## ")[0]
    assert [line.split("`")[1] for line in section.splitlines() if line.startswith("| `") and "algorithm" not in line.split("`")[1]] == list(OFFERED)
