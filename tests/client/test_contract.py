"""Every operation of the contract has a method, and no method calls what is not there."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import halfmoon._sync
import yaml


def marked() -> Iterator[str]:
    """The operations that the methods of all classes say they call."""
    for info in pkgutil.iter_modules(halfmoon._sync.__path__):
        module = importlib.import_module(f"halfmoon._sync.{info.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__:
                for _, function in inspect.getmembers(kind, inspect.isfunction):
                    yield from getattr(function, "operations", ())


def test_every_operation_has_a_method(repository: Path) -> None:
    contract = yaml.safe_load((repository / "openapi/openapi.yaml").read_text())
    methods = ("get", "post", "put", "delete", "patch")
    operations = [operation for path in contract["paths"].values() for name, operation in path.items() if name in methods]
    # Label Studio calls its backend; nobody else does
    there = {operation["operationId"] for operation in operations if not operation["tags"][0].startswith("label-studio")}
    assert there - set(marked()) == set()
    assert set(marked()) - there == set()
