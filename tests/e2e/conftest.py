"""Services and documents for the tests that run everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from app.cli.demo import Vectors, load_vectors
from tests.e2e.browser import Seat, seat
from tests.e2e.person import write_messages
from tests.e2e.service import Service, large


@pytest.fixture(scope="session")
def text() -> Vectors:
    return load_vectors(0)


@pytest.fixture(scope="session")
def large_body() -> bytes:
    """A training of a second and more: what harms it finds it at work."""
    return large(n_documents=12_000)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service shared by all tests that only add to it."""
    folder = tmp_path_factory.mktemp("service")
    with Service(folder / "data", folder / "log") as running:
        yield running


@pytest.fixture
def truth(tmp_path: Path) -> dict[str, str]:
    """The label of each document of ``messages.csv``, which does not have it."""
    return write_messages(tmp_path / "messages.csv")


@pytest.fixture
def at(service: Service) -> Iterator[Seat]:
    """A seat at the page of the service, which complains of nothing to the end."""
    with seat(service.url) as at:
        yield at
        assert at.complaints == []


@pytest.fixture
def page(at: Seat) -> Page:
    """The page of that seat."""
    return at.page
