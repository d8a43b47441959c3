"""Metrics for Prometheus."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from storage.errors import Unavailable
from storage.records import SIZES, JobState

if TYPE_CHECKING:
    from app.services.wiring import Services

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Metrics of one gateway process, and of its installation, in registries of their own.

    Where several processes share an address, the one that is asked reports for all of them: ``others`` has what each of
    the others says of itself, by process id. The series of a process then have the label ``pid``. They are not summed:
    the sum of counters falls when a process ends, which Prometheus takes for a reset, so that rates would be wrong.
    """

    def __init__(self, services: "Services", others: Callable[[], Mapping[int, bytes]] | None = None) -> None:
        self._others = others
        self._process, self._installation = CollectorRegistry(), CollectorRegistry()
        self._requests = Counter(
            "halfmoon_requests", "Requests answered.", ("method", "route", "status"), registry=self._process
        )
        self._seconds = Histogram(
            "halfmoon_request_seconds",
            "Seconds from request to the start of its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._process,
        )
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._process.register(_Collector(partial(_of_gateway, services)))
        ProcessCollector(registry=self._process)
        self._installation.register(_Collector(partial(_of_installation, services)))

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; ``route`` is the template of its path."""
        key = method, route, status
        if key not in self._series:
            self._series[key] = self._requests.labels(method, route, str(status)), self._seconds.labels(method, route)
        requests, durations = self._series[key]
        requests.inc()
        durations.observe(seconds)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus.

        It reads the store and Redis, and leaves out the figures of one that does not answer.
        """
        own = self.of_process()
        processes = own if self._others is None else side_by_side({os.getpid(): own, **self._others()})
        return processes + generate_latest(self._installation)

    def of_process(self) -> bytes:
        """Metrics of this process alone, without a label that names it."""
        return generate_latest(self._process)


def side_by_side(texts: Mapping[int, bytes]) -> bytes:
    """Metrics of several processes as one text: a family once, each sample with the label ``pid``."""
    merged: dict[str, Metric] = {}
    for process, text in sorted(texts.items()):
        for family in text_string_to_metric_families(text.decode()):
            known = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            known.samples += [
                sample._replace(labels={**sample.labels, "pid": str(process)}) for sample in family.samples
            ]
    registry = CollectorRegistry()
    registry.register(_Collector(merged.values))
    return generate_latest(registry)


class _Collector(Collector):
    """A collector of figures that are read at every scrape."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The figures now."""
        return self._read()

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering reads no source and checks no name."""
        return iter(())


def _of_gateway(services: "Services") -> list[Metric]:
    """Figures of this process."""
    cache = services.model_cache
    return [
        GaugeMetricFamily("halfmoon_model_cache_bytes", "Memory taken by loaded models.", cache.loaded.size),
        GaugeMetricFamily("halfmoon_model_cache_models", "Models in memory.", len(cache.loaded)),
        CounterMetricFamily("halfmoon_model_cache_loads", "Models read from the store.", cache.loads),
        GaugeMetricFamily("halfmoon_uploads", "Uploads that are being received.", services.limits.uploads.used),
        GaugeMetricFamily("halfmoon_body_bytes", "Bytes of bodies and answers in memory.", services.limits.bodies.used),
        GaugeMetricFamily(
            "halfmoon_scored_datasets", "Datasets that are scored or wait for it.", services.limits.scorings.used
        ),
        GaugeMetricFamily(
            "halfmoon_damaged_records",
            "Records and files of the store that it could not read.",
            len(services.store.damage.found),
        ),
        GaugeMetricFamily(
            "halfmoon_listeners", "Clients that follow the events of a job.", services.job_follower.listeners
        ),
    ]


def _of_installation(services: "Services") -> Iterator[Metric]:
    """Figures of the installation, which all its gateways report alike: aggregate them by max, not by sum."""
    for name, what, read in (("redis", "Redis answers", _of_redis), ("store", "the store answers", _of_store)):
        up = 0
        with suppress(Unavailable):
            yield from read(services)
            up = 1
        yield GaugeMetricFamily(f"halfmoon_{name}_up", f"Whether {what}.", up)


def _of_redis(services: "Services") -> Iterator[Metric]:
    queue, redis_state = services.queue, services.redis_state
    yield GaugeMetricFamily("halfmoon_queue_depth", "Jobs that wait for a worker.", queue.depth())
    sizes = GaugeMetricFamily("halfmoon_waiting_jobs", "Jobs that wait for a worker, by size.", labels=["size"])
    for size, count in queue.depths().items():
        sizes.add_metric([size], count)
    yield sizes
    yield GaugeMetricFamily("halfmoon_queue_age_seconds", "Seconds since the oldest of them was posted.", queue.age())
    yield GaugeMetricFamily("halfmoon_workers", "Workers with a recent heartbeat.", len(redis_state.workers()))
    takers = GaugeMetricFamily(
        "halfmoon_size_workers", "Workers with a recent heartbeat that take jobs of a size.", labels=["size"]
    )
    for size in SIZES:
        takers.add_metric([size], len(redis_state.workers(size)))
    yield takers
    ended = HistogramMetricFamily(
        "halfmoon_training_seconds",
        "Seconds from the last start of a job to its end, since Redis was last emptied.",
        labels=["algorithm", "state"],
    )
    for (algorithm, state), times in redis_state.outcome_times().items():
        ended.add_metric([algorithm, state], [(bound, times.within[bound]) for bound in times.within], times.seconds)
    yield ended


def _of_store(services: "Services") -> Iterator[Metric]:
    waiting: set[str] = set()
    # without Redis all jobs are read
    with suppress(Unavailable):
        waiting = services.queue.waiting()
    tally = services.jobs.states(waiting)
    states = GaugeMetricFamily("halfmoon_jobs", "Jobs that have not ended, by state.", labels=["state"])
    for state in JobState:
        if not state.final:
            states.add_metric([state.value], tally[state])
    yield states
    count, size = services.quota.used()
    yield GaugeMetricFamily("halfmoon_datasets", "Datasets in the store.", count)
    yield GaugeMetricFamily("halfmoon_dataset_bytes", "Bytes of their files; shared files count once.", size)
    free = services.store.free()
    if free is not None:
        yield GaugeMetricFamily("halfmoon_store_free_bytes", "Bytes left on the file system of the store.", free)
