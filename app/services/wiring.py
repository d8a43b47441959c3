"""The services that the routes use: repositories, queue, limits and thread pools, opened once a gateway process."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple, Self

from fastapi import Depends

from app.http.access import Access
from app.http.limits import Limits
from app.http.requests import services_of
from app.services.admission import Admission, Backlog, StoreProbe
from app.services.job_follower import JobFollower, JobReader
from app.services.metrics import Metrics
from app.services.periodic import PeriodicTask
from app.services.version_cache import ModelCache, VersionCache
from app.services.webhooks.delivery import Delivery
from app.services.webhooks.sender import Sender
from app.settings import GatewaySettings
from core.models.model import Model
from storage.process.system import release_memory
from storage.queue.connection import connect
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.recent import LastUsed
from storage.repositories.api_keys import ApiKeys
from storage.repositories.datasets import Datasets
from storage.repositories.datasets.quota import Quota
from storage.repositories.job_list import LIST_SECONDS, JobList
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.repositories.webhooks import Webhooks
from storage.store import Store, open_store
from storage.upkeep.binding import RENEW_SECONDS
from storage.upkeep.cleanup import GarbageCollector, remove_expired
from storage.upkeep.reconcile import Reconciler
from workers.encoders.catalogue import Encoders

_LOCAL_FRESH_SECONDS = 0.05
"""Seconds for which the version that a model serves is cached, where the store is a local folder."""
_RESOLVE_THREADS = 4
_COMPUTED = 100_000
"""Multiplications for a document from which on they take longer than to parse it and to answer for it."""
_RELEASE_SECONDS = 30.0
"""Seconds between two times that freed memory is given back to the system."""
_DAMAGE_CHECK_SECONDS = 30.0
"""Seconds between two looks whether what was damaged is so still."""


class Pools(NamedTuple):
    """Threads by what they do."""

    parse: ThreadPoolExecutor
    """parse large bodies; they never wait for the store, as those of predictions do not"""
    store: ThreadPoolExecutor
    """parse and store uploads, and store what other requests make"""
    predict: ThreadPoolExecutor
    """a single thread that computes large predictions: two keep each other from the interpreter, and both together are
    slower; it never waits for the store, so that models in memory answer while that hangs"""
    compute: ThreadPoolExecutor
    """compute predictions that take longer outside of the interpreter than in it, as those of encoders; they never wait
    for the store either"""
    load: ThreadPoolExecutor
    """load models"""
    score: ThreadPoolExecutor
    """score datasets"""
    evaluate: ThreadPoolExecutor
    """evaluate models on posted documents; so these delay no prediction, and no dataset delays them"""
    resolve: ThreadPoolExecutor
    """ask the store which version a name or an alias stands for"""
    follow: ThreadPoolExecutor
    """look how followed jobs are"""

    @classmethod
    def of(cls, settings: GatewaySettings) -> Self:
        """The threads of the settings; none has begun."""
        return cls(
            parse=ThreadPoolExecutor(settings.parse_threads, "parse"),
            store=ThreadPoolExecutor(settings.parse_threads, "store"),
            predict=ThreadPoolExecutor(1, "predict"),
            compute=ThreadPoolExecutor(settings.predict_threads, "compute"),
            load=ThreadPoolExecutor(settings.predict_threads, "load"),
            score=ThreadPoolExecutor(settings.score_threads, "score"),
            evaluate=ThreadPoolExecutor(settings.score_threads, "evaluate"),
            resolve=ThreadPoolExecutor(_RESOLVE_THREADS, "resolve"),
            follow=ThreadPoolExecutor(settings.event_poll_threads, "follow"),
        )

    def predicting(self, model: Model) -> ThreadPoolExecutor:
        """The threads in which a model predicts."""
        return self.compute if model.vocabulary.encodes or model.row_work > _COMPUTED else self.predict


@dataclass(frozen=True)
class Services:
    """The repositories, the queue, the limits and the thread pools of one gateway."""

    settings: GatewaySettings
    store: Store
    store_probe: StoreProbe
    admission: Admission
    access: Access
    datasets: Datasets
    jobs: Jobs
    job_list: JobList
    models: Models
    delivery: Delivery
    """Delivery of webhooks."""
    model_cache: ModelCache
    encoders: Encoders
    version_cache: VersionCache
    score_cache: LastUsed[tuple[Any, ...]]
    """Cache of the predictions of whole datasets."""
    redis_state: RedisState
    queue: Queue
    job_follower: JobFollower
    quota: Quota
    other_metrics: Callable[[], Mapping[int, bytes]] | None
    """Metrics of the other processes at the address of this one, by process id; None if it has the address alone."""
    backlog: Backlog
    limits: Limits
    pools: Pools

    @cached_property
    def metrics(self) -> Metrics:
        """Metrics of this process and of the installation."""
        return Metrics(self, self.other_metrics)


@contextmanager
def open_services(
    settings: GatewaySettings, other_metrics: Callable[[], Mapping[int, bytes]] | None = None
) -> Iterator[Services]:
    """Open the services and run the periodic tasks until the block ends. Neither Redis nor the store need answer yet.

    Raises CannotStart for a store that must not be used, ValueError for an address that is none.
    """
    with ExitStack() as stack:
        store = open_store(settings.store_url, settings.cache_dir, cache_bytes=settings.cache_bytes)
        redis = stack.enter_context(connect(settings.redis_url, settings.redis_timeout_seconds))
        admission = Admission(store, redis, settings.queue)
        admission.start()
        stack.callback(admission.release)
        pools = Pools.of(settings)
        for pool in pools:  # their threads use all of the above: they end first
            stack.enter_context(pool)
        jobs, models, redis_state = Jobs(store), Models(store), RedisState(redis, settings.queue)
        queue, encoders = Queue(redis, settings.queue, settings.job_timeout_seconds), Encoders.of(settings)
        model_cache = ModelCache(models, settings.model_cache_bytes, encoders)
        # a read of a local folder takes microseconds
        fresh_seconds = (
            _LOCAL_FRESH_SECONDS if settings.store_url.startswith("file:") else settings.version_cache_seconds
        )
        quota = Quota(store, settings.max_datasets, settings.max_total_dataset_bytes)
        reader = JobReader(jobs, redis_state, queue)
        version_cache = VersionCache(models, pools.resolve, fresh_seconds, settings.max_version_age_seconds)
        job_follower = JobFollower(
            lambda id: version_cache.published(reader.now(id)), settings.event_poll_seconds, pools.follow
        )
        services = Services(
            settings=settings,
            store=store,
            store_probe=StoreProbe(lambda: store.writable()),
            admission=admission,
            access=Access(ApiKeys(store), settings),
            datasets=Datasets(store, settings, quota, jobs, abandoned_seconds=settings.abandoned_after_seconds),
            jobs=jobs,
            job_list=JobList(jobs),
            models=models,
            delivery=Delivery(Webhooks(store), jobs, models, Sender(settings.webhook_networks)),
            model_cache=model_cache,
            encoders=encoders,
            version_cache=version_cache,
            score_cache=LastUsed(
                settings.score_cache_bytes, lambda arrays: sum(each.nbytes for each in arrays if each is not None)
            ),
            redis_state=redis_state,
            queue=queue,
            job_follower=job_follower,
            backlog=Backlog(jobs, settings.max_unfinished_jobs, settings.max_unfinished_jobs_per_key),
            limits=Limits.of(settings),
            other_metrics=other_metrics,
            quota=quota,
            pools=pools,
        )
        stack.callback(services.delivery.close)
        for task in _periodic_tasks(services):
            stack.enter_context(task)
        yield services


def _periodic_tasks(services: Services) -> list[PeriodicTask]:
    settings, store, datasets, jobs, models = (
        services.settings,
        services.store,
        services.datasets,
        services.jobs,
        services.models,
    )
    bound = services.admission.when_bound
    reconciler = Reconciler(
        jobs,
        services.redis_state,
        services.queue,
        lease_seconds=settings.lease_seconds,
        max_attempts=settings.max_attempts,
        abandoned_seconds=settings.abandoned_after_seconds,
    )
    garbage = GarbageCollector(store, jobs, models, settings.keep_leftover_seconds, settings.abandoned_after_seconds)
    removals: list[Callable[[], object]] = [
        store.remove_abandoned,
        services.quota.recount,
        datasets.remove_abandoned,
        partial(remove_expired, datasets, jobs, models, settings.retention_policy),
        garbage.remove_abandoned,
    ]
    return [
        PeriodicTask("job list", [services.job_list.refresh], LIST_SECONDS / 2, first_delay=0.0),
        PeriodicTask("admission", [services.admission.renew], RENEW_SECONDS),
        PeriodicTask("memory", [release_memory], _RELEASE_SECONDS),
        PeriodicTask("damage", [store.damage.check_again], _DAMAGE_CHECK_SECONDS),
        PeriodicTask("keys", [services.access.refresh], settings.key_refresh_seconds, first_delay=0.0),
        PeriodicTask(
            "reconcile",
            [jobs.unfinished_requests, bound(datasets.recover_deletions), bound(reconciler.reconcile)],
            settings.reconcile_interval_seconds,
        ),
        PeriodicTask("webhooks", [bound(services.delivery.deliver)], settings.reconcile_interval_seconds),
        PeriodicTask("cleanup", [bound(remove) for remove in removals], settings.cleanup_interval_seconds),
    ]


ServicesDep = Annotated[Services, Depends(services_of)]
"""Type of a route parameter that FastAPI fills with the services."""
