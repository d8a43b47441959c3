"""What the routes work with, opened once for each gateway process and passed to them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Depends, Request

from app.http.access import Access
from app.http.limits import Limit
from app.services.backlog import Backlog
from app.services.job_follower import JobFollower, job_now
from app.services.metrics import Metrics, Observed
from app.services.model_cache import LoadedModels
from app.services.periodic import PeriodicTask
from app.settings import GatewaySettings
from workers.queue.connect import connect
from workers.queue.queue import Queue
from workers.queue.redis_state import RedisState
from workers.repositories.api_keys import ApiKeys
from workers.repositories.datasets import Datasets
from workers.repositories.datasets.quota import Quota
from workers.repositories.job_list import JobList
from workers.repositories.jobs import Jobs
from workers.repositories.models import Models
from workers.store import Store, open_store
from workers.upkeep.garbage_collection import GarbageCollector
from workers.upkeep.reconcile import Reconciler
from workers.upkeep.retention import Retention


@dataclass(frozen=True)
class Services:
    """The repositories, the queue and the threads of one gateway."""

    settings: GatewaySettings
    store: Store
    access: Access
    datasets: Datasets
    jobs: Jobs
    job_list: JobList
    models: LoadedModels
    redis_state: RedisState
    queue: Queue
    job_follower: JobFollower
    metrics: Metrics
    backlog: Backlog
    upload_limit: Limit
    """how many uploads are received at a time"""
    buffer_limit: Limit
    """bytes of bodies in memory"""
    scoring_limit: Limit
    """how many datasets are scored, or wait for it, at a time"""
    parsing: ThreadPoolExecutor
    """where uploads are parsed and sealed"""
    predicting: ThreadPoolExecutor
    """where models are loaded and large predictions computed"""
    scoring: ThreadPoolExecutor
    """where whole datasets are scored"""
    evaluating: ThreadPoolExecutor
    """where posted documents are scored to evaluate a model: for that neither a prediction waits, nor it for a dataset"""


@contextmanager
def open_services(settings: GatewaySettings) -> Iterator[Services]:
    """Open the store and a client of Redis, which need not answer yet, and reconcile until closed. Raises StoreUnavailable, ValueError."""
    with ExitStack() as stack:
        store = open_store(settings.store_url, settings.cache_dir, cache_bytes=settings.cache_bytes)
        redis = stack.enter_context(connect(settings.redis_url, settings.redis_timeout_seconds))
        jobs, redis_state = Jobs(store), RedisState(redis, settings.queue)
        queue = Queue(redis, settings.queue, settings.job_timeout_seconds)
        models = LoadedModels(Models(store), settings.model_cache_bytes, 0.0 if settings.store_is_local else settings.version_cache_seconds)
        quota = Quota(store, settings.max_datasets, settings.max_total_dataset_bytes)
        datasets = Datasets(store, settings.dataset_limits, quota, abandoned_seconds=settings.abandoned_after_seconds)

        access = Access(ApiKeys(store), settings)
        stack.enter_context(PeriodicTask("keys", [access.refresh], settings.key_refresh_seconds, first_delay=0.0))
        reconciler = Reconciler(
            jobs,
            redis_state,
            queue,
            lease_seconds=settings.lease_seconds,
            max_attempts=settings.max_attempts,
            abandoned_seconds=settings.abandoned_after_seconds,
        )
        stack.enter_context(PeriodicTask("reconcile", [datasets.recover_deletions, reconciler.reconcile], settings.reconcile_interval_seconds))
        retention = Retention(datasets, jobs, models.registry, settings.retention_policy)
        garbage = GarbageCollector(store, jobs, models.registry, settings.keep_leftover_seconds)
        removals = [store.remove_abandoned, quota.recount, datasets.remove_abandoned, retention.remove_expired, garbage.remove_abandoned]
        stack.enter_context(PeriodicTask("cleanup", removals, settings.cleanup_interval_seconds))
        upload_limit = Limit("uploads", "concurrent-requests", settings.max_concurrent_uploads)
        buffer_limit = Limit("bodies in memory", "content-bytes", settings.max_buffered_bytes)
        scoring_limit = Limit("datasets being scored", "concurrent-requests", settings.max_concurrent_scorings)
        polling = stack.enter_context(ThreadPoolExecutor(settings.event_poll_threads, "poll jobs"))
        job_follower = JobFollower(partial(job_now, jobs, redis_state, queue), settings.event_poll_seconds, polling)
        yield Services(
            settings=settings,
            store=store,
            access=access,
            datasets=datasets,
            jobs=jobs,
            job_list=JobList(jobs),
            models=models,
            redis_state=redis_state,
            queue=queue,
            job_follower=job_follower,
            backlog=Backlog(jobs, settings.max_unfinished_jobs, settings.max_unfinished_jobs_per_key),
            upload_limit=upload_limit,
            buffer_limit=buffer_limit,
            scoring_limit=scoring_limit,
            metrics=Metrics(Observed(store, queue, redis_state, jobs, models, quota, upload_limit, buffer_limit, scoring_limit, job_follower)),
            parsing=stack.enter_context(ThreadPoolExecutor(settings.parse_threads, "parse")),
            predicting=stack.enter_context(ThreadPoolExecutor(settings.predict_threads, "predict")),
            scoring=stack.enter_context(ThreadPoolExecutor(settings.score_threads, "score")),
            evaluating=stack.enter_context(ThreadPoolExecutor(settings.score_threads, "evaluate")),
        )


def services_of(request: Request) -> Services:
    """The services of the gateway that got this request."""
    found: Services = request.app.state.services
    return found


ServicesDep = Annotated[Services, Depends(services_of)]
"""A parameter of this type gets the services."""
