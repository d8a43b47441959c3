"""What most tests of the state begin with."""

import pytest

from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.stores import make_dataset


@pytest.fixture
def dataset(store: Store) -> str:
    """The id of a new dataset."""
    return make_dataset(store).id


@pytest.fixture
def jobs(store: Store) -> Jobs:
    return Jobs(store)


@pytest.fixture
def models(store: Store) -> Models:
    return Models(store)
