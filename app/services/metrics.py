"""What Prometheus is told."""

from collections import Counter as Tally
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from app.http.limits import Limit
from app.services.job_follower import JobFollower
from app.services.model_cache import LoadedModels
from workers.contract import JobState
from workers.errors import Unavailable
from workers.queue.queue import Queue
from workers.queue.redis_state import RedisState
from workers.repositories.datasets.quota import Quota
from workers.repositories.jobs import Jobs
from workers.store import Store

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Observed(NamedTuple):
    """What is looked at when somebody asks."""

    store: Store
    queue: Queue
    redis_state: RedisState
    jobs: Jobs
    models: LoadedModels
    quota: Quota
    upload_limit: Limit
    buffer_limit: Limit
    scoring_limit: Limit
    job_follower: JobFollower


class Metrics:
    """The counters of one gateway, in a registry of its own."""

    def __init__(self, observed: Observed) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter("halfmoon_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry)
        self._seconds = Histogram(
            "halfmoon_request_seconds",
            "Seconds from request to the start of its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_Gateway(observed))
        self._registry.register(_Installation(observed))
        ProcessCollector(registry=self._registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; ``route`` is the template of its path."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """Everything in Prometheus' text format. Asks the store and Redis; what does not answer is left out."""
        return generate_latest(self._registry)


class _Asked(Collector):
    """What is looked up when it is asked for."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def describe(self) -> Iterator[Metric]:
        """Nothing: so that registering asks nobody."""
        return iter(())


class _Gateway(_Asked):
    """What this process holds."""

    def collect(self) -> Iterator[Metric]:
        """The numbers of now."""
        models = self._observed.models
        yield GaugeMetricFamily("halfmoon_model_cache_bytes", "Memory taken by loaded models.", models.nbytes)
        yield GaugeMetricFamily("halfmoon_model_cache_models", "Models that are loaded.", models.count)
        yield CounterMetricFamily("halfmoon_model_cache_loads", "Models read from the store.", models.loads)
        yield GaugeMetricFamily("halfmoon_uploads", "Uploads that are being received.", self._observed.upload_limit.used)
        yield GaugeMetricFamily("halfmoon_body_bytes", "Bytes of bodies and their answers held in memory.", self._observed.buffer_limit.used)
        yield GaugeMetricFamily("halfmoon_scored_datasets", "Datasets that are being scored, or wait to be.", self._observed.scoring_limit.used)
        yield GaugeMetricFamily("halfmoon_listeners", "Clients that listen to the events of a job.", self._observed.job_follower.listeners)


class _Installation(_Asked):
    """What all gateways of an installation tell alike: take the largest, not the sum."""

    def collect(self) -> Iterator[Metric]:
        """The numbers of now."""
        for name, what, look in (("redis", "Redis answers", self._of_redis), ("store", "the store answers", self._of_store)):
            up = 0
            with suppress(Unavailable):
                yield from look()
                up = 1
            yield GaugeMetricFamily(f"halfmoon_{name}_up", f"Whether {what}.", up)

    def _of_redis(self) -> Iterator[Metric]:
        queue, redis_state = self._observed.queue, self._observed.redis_state
        yield GaugeMetricFamily("halfmoon_queue_depth", "Jobs that wait for a worker.", queue.depth())
        yield GaugeMetricFamily("halfmoon_queue_age_seconds", "Since when the oldest of them was asked for.", queue.age())
        yield GaugeMetricFamily("halfmoon_workers", "Workers that have lately given a sign of life.", queue.workers())
        ended = HistogramMetricFamily(
            "halfmoon_training_seconds", "Seconds from a job's last start to its end, since Redis was last emptied.", labels=["algorithm", "state"]
        )
        for (algorithm, state), told in redis_state.outcome_times().items():
            ended.add_metric([algorithm, state], [(bound, told.within[bound]) for bound in told.within], told.seconds)
        yield ended

    def _of_store(self) -> Iterator[Metric]:
        tally = Tally(job.state for job in self._observed.jobs.unfinished())
        states = GaugeMetricFamily("halfmoon_jobs", "Jobs that have not ended, by state.", labels=["state"])
        for state in JobState:
            if not state.final:
                states.add_metric([state.value], tally[state])
        yield states
        count, size = self._observed.quota.used()
        yield GaugeMetricFamily("halfmoon_datasets", "Datasets in the store.", count)
        yield GaugeMetricFamily("halfmoon_dataset_bytes", "Bytes of their files, those that several share once.", size)
        free = self._observed.store.free()
        if free is not None:
            yield GaugeMetricFamily("halfmoon_store_free_bytes", "Bytes left on the file system of the store.", free)
