"""The client against the contract and against itself: every operation has a method, and both twins are the same."""

import ast
import importlib
import inspect
import pkgutil
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import halfmoon._sync
import msgspec
import pytest
from halfmoon import records
from hatchling.builders.wheel import WheelBuilder


def marked() -> Iterator[str]:
    """The operations that the methods of all classes say they call."""
    for info in pkgutil.iter_modules(halfmoon._sync.__path__):
        module = importlib.import_module(f"halfmoon._sync.{info.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__:
                for _, function in inspect.getmembers(kind, inspect.isfunction):
                    yield from getattr(function, "operations", ())


def test_every_operation_has_a_method(contract: dict[str, Any]) -> None:
    methods = ("get", "post", "put", "delete", "patch")
    operations = [
        operation for path in contract["paths"].values() for name, operation in path.items() if name in methods
    ]
    # Label Studio calls its backend; nobody else does
    there = {
        operation["operationId"] for operation in operations if not operation["tags"][0].startswith("label-studio")
    }
    assert there - set(marked()) == set()
    assert set(marked()) - there == set()


RECORDS: dict[str, type[msgspec.Struct]] = {
    "Dataset": records.DatasetRecord,
    "Job": records.JobRecord,
    "Version": records.Version,
    "Model": records.ModelRecord,
    "ModelSummary": records.ModelSummary,
    "Annotation": records.Annotation,
    "Progress": records.Progress,
    "Suggestion": records.Suggestion,
    "Prediction": records.Prediction,
    "Evaluation": records.Evaluation,
    "Trace": records.Trace,
    "Webhook": records.Webhook,
}


@pytest.mark.parametrize("schema", RECORDS)
def test_every_field_of_an_answer_has_its_place(schema: str, contract: dict[str, Any]) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(RECORDS[schema])}
    assert set(contract["components"]["schemas"][schema]["properties"]) - fields == set()


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
