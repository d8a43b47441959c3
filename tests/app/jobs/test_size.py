"""The size of a job follows from the expected cost of its training; the worker's own estimate agrees with it."""

from typing import Any

import pytest

from app.jobs.service import _rows, size_of
from app.settings import GatewaySettings
from core.memory_estimate import RowsSize
from core.options.text import TextOptions
from core.registry import find_algorithm
from storage.queue.redis_state import RedisState
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from tests.app.conftest import Gateway, Start
from tests.waiting import HANG

DOCUMENTS: dict[str, list[dict[str, Any]]] = {
    "vectors": [{"indices": [0, 7], "values": [1.0, 2.0], "label": "a"}, {"indices": [1], "label": "b"}],
    "names": [{"features": {"x": 1.0, "y": 2.0}, "label": "a"}, {"features": {"z": 1.0}, "label": "b"}],
    "text": [{"text": "one fish two fish", "label": "a"}, {"text": "red fish blue fish", "label": "b"}],
    "parts": [
        {"text": "one fish", "vector": [1.0, 0.5], "label": "a"},
        {"text": "red fish", "vector": [0.0, 1.0], "label": "b"},
    ],
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_manifest_says_as_much_as_the_rows(gateway: Gateway, kind: str) -> None:
    id = gateway.upload(DOCUMENTS[kind])["id"]
    datasets = Datasets(gateway.store)
    assert _rows(datasets.get(id), TextOptions.parse({})) == RowsSize.of(datasets.open(id).rows, {})


def test_the_bounds_are_settings(gateway: Gateway) -> None:
    dataset = Datasets(gateway.store).get(gateway.upload(DOCUMENTS["vectors"])["id"])
    options = find_algorithm("tsvm").options.parse({})
    bounds: list[dict[str, Any]] = [{}, {"small_job_bytes": 1}, {"small_job_bytes": 1, "large_job_bytes": 2}]
    assert [size_of(dataset, options, None, GatewaySettings(**each)) for each in bounds] == ["small", "medium", "large"]
    huge = dataset.model_copy(update={"n_documents": 5_000_000, "n_nonzeros": 400_000_000})
    assert size_of(huge, options, None, GatewaySettings()) == "large"


def test_a_job_waits_by_its_size(start: Start, redis_state: RedisState) -> None:
    gateway = start(small_job_bytes=1)
    redis_state.record_heartbeat("w", HANG, sizes=["small"])
    id = gateway.job(dataset=gateway.upload(DOCUMENTS["vectors"])["id"]).json()["id"]
    assert Jobs(gateway.store).get(id).request.size == "medium"
    text = gateway.client.get("/metrics").text
    assert 'halfmoon_waiting_jobs{size="medium"} 1.0' in text
    assert 'halfmoon_waiting_jobs{size="small"} 0.0' in text
    assert "halfmoon_queue_depth 1.0" in text
    assert 'halfmoon_size_workers{size="small"} 1.0' in text
    assert 'halfmoon_size_workers{size="medium"} 0.0' in text
    redis_state.remove_worker("w")
