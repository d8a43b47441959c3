"""The client that waits is what is generated from the one that is awaited."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "client/src/halfmoon"
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
