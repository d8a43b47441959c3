"""What all tests share: where the project lies, and property tests that are the same in every run."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("same-every-run", derandomize=True, deadline=None, database=None)
settings.load_profile("same-every-run")


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
