"""The context of a worker, and fakes of the training."""

from typing import TYPE_CHECKING

import pytest
from redis import Redis

from storage.store import Store
from tests.there import there

if TYPE_CHECKING:
    from core.train import Training
    from tests.workers.worker.attempts import Faked
    from workers.worker.context import WorkerContext


@pytest.fixture
def context(store: Store, redis: Redis) -> "WorkerContext":
    """The context of a worker."""
    from tests.workers.worker.attempts import make_context

    return make_context(store, redis)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "list[Faked]":
    """Fakes of the training; the last is used."""
    import core.train
    from tests.workers.worker.attempts import trained

    chosen: list[Faked] = [lambda observer: trained()]

    def train(task: core.train.TrainingTask, context: core.train.TrainingContext) -> "Training":
        return chosen[-1](there(context.observer))

    monkeypatch.setattr(core.train, "train", train)
    return chosen


@pytest.fixture
def endless(fake: "list[Faked]") -> None:
    """A training that goes on until it is stopped."""
    from tests.workers.worker.attempts import work_until_stopped

    fake.append(work_until_stopped)
