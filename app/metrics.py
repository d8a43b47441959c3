"""What Prometheus is told."""

from collections import Counter as Tally
from collections.abc import Iterator
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.loaded import LoadedModels
from workers.contract import JobState
from workers.errors import Unavailable
from workers.jobs import Jobs
from workers.queue import Queue

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one gateway, in a registry of its own."""

    def __init__(self, queue: Queue, jobs: Jobs, models: LoadedModels) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter("halfmoon_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry)
        self._seconds = Histogram(
            "halfmoon_request_seconds",
            "Seconds from request to the start of its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_State(queue, jobs, models))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; ``route`` is the template of its path."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """Everything in Prometheus' text format. Asks the store and Redis; what does not answer is left out."""
        return generate_latest(self._registry)


class _State(Collector):
    """What is looked up when it is asked for."""

    def __init__(self, queue: Queue, jobs: Jobs, models: LoadedModels) -> None:
        self._queue = queue
        self._jobs = jobs
        self._models = models

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: so that registering asks nobody."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges of now."""
        yield GaugeMetricFamily("halfmoon_model_cache_bytes", "Memory taken by loaded models.", self._models.nbytes)
        up = 0
        with suppress(Unavailable):
            yield GaugeMetricFamily("halfmoon_queue_depth", "Jobs that wait for a worker.", self._queue.depth())
            yield GaugeMetricFamily("halfmoon_workers", "Workers that have lately given a sign of life.", self._queue.workers())
            up = 1
        yield GaugeMetricFamily("halfmoon_redis_up", "Whether Redis answers.", up)
        with suppress(Unavailable):
            tally = Tally(job.state for job in self._jobs.unfinished())
            states = GaugeMetricFamily("halfmoon_jobs", "Jobs that have not ended, by state.", labels=["state"])
            for state in JobState:
                if not state.final:
                    states.add_metric([state.value], tally[state])
            yield states
