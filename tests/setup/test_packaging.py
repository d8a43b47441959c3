"""Every requirement is pinned, every pin is exact, and what is installed is what is pinned."""

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.fixture
def project(repository: Path) -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    return content


@pytest.fixture
def pins(repository: Path) -> list[str]:
    return [line for line in (repository / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]


def test_every_pin_is_exact_and_from_the_index(pins: list[str]) -> None:
    assert len(pins) > 100
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin)] == []


def test_every_requirement_is_pinned(project: dict[str, Any], pins: list[str]) -> None:
    wanted = project["dependencies"] + [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    assert {name_of(requirement) for requirement in wanted} - {name_of(pin) for pin in pins} == set()


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="halfmoon")
    assert command.value == "app.cli:main"
    assert callable(command.load())


def test_the_licence_is_mit(project: dict[str, Any], repository: Path) -> None:
    assert project["license"] == "MIT"
    assert (repository / "LICENSE").read_text().startswith("MIT License\n")
