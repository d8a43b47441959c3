"""Metrics of several processes at one address."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.services.metrics import side_by_side


def process(requests: int) -> bytes:
    registry = CollectorRegistry()
    Counter("requests", "Requests answered.", ("route",), registry=registry).labels('/a"b\\').inc(requests)
    Gauge("models", "Models.", registry=registry).set(2.5)
    Histogram("seconds", "Seconds.", buckets=(0.1, 1.0), registry=registry).observe(0.5)
    return generate_latest(registry)


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(text.decode())
    found = [sample for family in families for sample in family.samples if not sample.name.endswith("_created")]
    assert len({(sample.name, *sorted(sample.labels.items())) for sample in found}) == len(found)
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in found}


def test_every_series_says_of_which_process_it_is() -> None:
    merged = side_by_side({7: process(3), 12: process(5)})
    assert merged.count(b"# TYPE requests_total counter") == 1
    assert merged.count(b"# TYPE seconds histogram") == 1
    expected = {
        (name, tuple(sorted((*labels, ("pid", str(pid)))))): value
        for pid, count in ((7, 3), (12, 5))
        for (name, labels), value in samples(process(count)).items()
    }
    assert samples(merged) == expected
    assert len(expected) == 2 * (1 + 1 + 5)
