"""Services and documents for the tests that run everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.demo.vectors import Documents, load_vectors
from tests.e2e.service import Service, large


@pytest.fixture(scope="session")
def text() -> Documents:
    return load_vectors(0)


@pytest.fixture(scope="session")
def large_body() -> bytes:
    return large()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path / "data", tmp_path / "log", lease_seconds="1") as running:
        yield running
