"""Shared by all tests: the place of the project, and property tests that are the same in every run."""

import gc
import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.stores import any_store, no_redis, redis, s3_endpoint, shared_valkey, store, submitted, valkey

__all__ = ["any_store", "no_redis", "redis", "s3_endpoint", "shared_valkey", "store", "submitted", "valkey"]

# a test that is about an encoder names its own
os.environ["HALFMOON_ENCODER"] = "none"
settings.register_profile("same-every-run", derandomize=True, deadline=None, database=None)
settings.register_profile("other-every-run", deadline=None, database=None)
settings.load_profile("same-every-run")
# else it tries the numbers and words in all modules that are loaded, which are more when other tests run before
providers._get_local_constants = lambda: providers._local_constants

_FIRST = (
    *("tests/e2e/", "tests/workers/worker/test_run.py", "tests/workers/cluster/test_engine.py"),
    *("tests/app/datasets/test_uploads.py", "tests/storage/upkeep/test_backup.py"),
)
"""what takes longest: no process is left with it when the others have done the rest (with
``--no-loadscope-reorder``)"""


def pytest_configure(config: pytest.Config) -> None:
    """The client that waits is as its source is now, though the package was installed before that changed.

    Until all tests are found nothing is thrown away, and to look for it takes a quarter of the time.
    """
    gc.disable()
    if not hasattr(config, "workerinput"):
        runpy.run_path(str(Path(__file__).parents[1] / "client" / "generate.py"), run_name="__main__")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """The output of gzip holds the time at which it was made, and processes that share the tests must call each by the
    same name.
    """
    return f"gzip of {len(val)} bytes" if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def contract(repository: Path) -> dict[str, Any]:
    """The committed OpenAPI document, by the loader in C: the other takes seconds."""
    text = (repository / "openapi/openapi.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)


@pytest.fixture
def every_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings report at each checkpoint, and not after some time."""
    monkeypatch.setattr("core.progress.SECONDS", 0.0)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Files of a test need not outlast the machine, and the disk is waited for forty thousand times else.

    The services of e2e do wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
