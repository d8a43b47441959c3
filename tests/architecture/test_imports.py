"""Imports go one way, and the gateway loads nothing that it does not need."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.application.use_cases import create_report, read_user_options
from importlinter.cli import lint_imports

from tests.architecture.size import imported, parsed

HEAVY = {
    "numba",
    "llvmlite",
    "scipy",
    "sklearn",
    "opentelemetry.exporter",
    "core.engine.csr_loops",
    "core.engine.runner",
    "core.train",
    "workers.worker.tasks",
    "workers.worker.run",
}


def loaded_by(module: str) -> set[str]:
    """Names of the modules that a fresh interpreter has after importing one."""
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    return set(
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    )


def test_the_contracts_are_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    lint_imports(config_filename="pyproject.toml", no_cache=True)  # registers the kinds of contract
    report = create_report(read_user_options(config_filename="pyproject.toml"), cache_dir=None)
    assert {contract.name for contract, _ in report.get_contracts_and_checks()} >= {
        "Imports go one way: app, workers, storage, core"
    }
    assert not report.contains_failures


def test_nothing_is_imported_from_a_test_module() -> None:
    """What several tests share stands in a module of helpers or in a ``conftest.py``."""
    trees = parsed("tests", "benchmarks")
    assert len(trees) > 50
    assert [
        f"{path}: {name}"
        for path, tree in trees.items()
        for name in imported(tree)
        if re.search(r"^tests\.(\w+\.)*test_\w+", name)
    ] == []


def test_the_gateway_loads_neither_numba_nor_what_trains() -> None:
    loaded = loaded_by("app.main")
    assert "fastapi" in loaded
    assert not loaded & HEAVY


def test_the_check_of_the_gateway_can_fail() -> None:
    assert loaded_by("core.train") & HEAVY


@pytest.mark.parametrize("module", ["app.cli.commands", "app.local.up"])
def test_a_command_starts_without_the_gateway(module: str) -> None:
    assert not loaded_by(module) & (HEAVY | {"fastapi", "numpy"})
