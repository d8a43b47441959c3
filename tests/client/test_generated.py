"""The client that waits is generated from the one that is awaited."""

import ast
import shutil
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "client/src/halfmoon"
MODULES = sorted(path.name for path in (PACKAGE / "_async").glob("*.py"))
AWAITED = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def test_each_module_has_a_twin() -> None:
    assert sorted(path.name for path in (PACKAGE / "_sync").glob("*.py")) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_the_twins_agree_but_one_awaits_nothing(name: str) -> None:
    there, here = (ast.parse((PACKAGE / folder / name).read_text()) for folder in ("_async", "_sync"))
    assert not any(isinstance(node, AWAITED) for node in ast.walk(here))
    assert not any(isinstance(node, ast.comprehension) and node.is_async for node in ast.walk(here))
    assert _defined(here) == [
        each.replace("Async", "").replace("aenter", "enter").replace("aexit", "exit") for each in _defined(there)
    ]


def _defined(tree: ast.Module) -> list[str]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in ast.walk(tree) if isinstance(node, kinds)]


def test_a_wheel_has_the_twin_that_git_does_not_have(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "client", tmp_path / "client", ignore=shutil.ignore_patterns("_sync"))
    (tmp_path / ".git").mkdir()
    shutil.copy(ROOT / ".gitignore", tmp_path)
    (wheel,) = WheelBuilder(str(tmp_path / "client")).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        assert {f"halfmoon/_sync/{name}" for name in MODULES} <= {*archive.namelist()}
