"""Documents that a dataset refuses."""

import pytest

from core.errors import Fault, InvalidDocuments
from storage.repositories.datasets import Batch
from storage.store import Store
from tests.stores import make_dataset


def refusal(store: Store, *batches: Batch) -> list[Fault]:
    with pytest.raises(InvalidDocuments) as caught:
        make_dataset(store, batches)
    return list(caught.value.faults)
