"""Inspection of a store: reads every record, and names those that are damaged."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from storage.records import Dataset, JobRequest, Outcome, Publication, Record, Version
from storage.repositories.aliases import Alias
from storage.repositories.api_keys import ApiKey
from storage.repositories.datasets.annotations.answers import Annotations
from storage.repositories.datasets.annotations.offered import Audit, Suggested
from storage.repositories.datasets.repository import DatasetProfile
from storage.repositories.job_attempts import Attempt, Death
from storage.repositories.jobs import Cancellation
from storage.repositories.webhooks import Webhook
from storage.store import Store, json_records

_THREADS = 16
_KINDS: Mapping[str, type[Record]] = {
    r"keys/[^/]+\.json": ApiKey,
    r"webhooks/[^/]+\.json": Webhook,
    r"datasets/[^/]+/manifest\.json": Dataset,
    r"datasets/[^/]+/profile\.json": DatasetProfile,
    r"datasets/[^/]+/suggested/[^/]+\.json": Suggested,
    r"datasets/[^/]+/annotations/\d+\.json": Annotations,
    r"datasets/[^/]+/merged/\d+\.json": Annotations,
    r"datasets/[^/]+/audits/[^/]+\.json": Audit,
    r"jobs/[^/]+/request\.json": JobRequest,
    r"jobs/[^/]+/cancel\.json": Cancellation,
    r"jobs/[^/]+/outcome\.json": Outcome,
    r"jobs/[^/]+/published\.json": Publication,
    r"jobs/[^/]+/attempts/\d+\.json": Attempt,
    r"jobs/[^/]+/attempts/\d+\.killed\.json": Death,
    r"models/[^/]+/versions/\d+\.json": Version,
    r"models/[^/]+/aliases/[^/]+\.json": Alias,
}
"""Kinds of records by their keys. Others are read by their names alone, or only when a client sends the same
idempotency key again."""
_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "keys": (),
    "webhooks": (),
    "datasets": ("suggested", "annotations", "merged", "audits"),
    "jobs": ("attempts",),
    "models": ("versions", "aliases"),
}
"""Prefixes that have records, with the folders of their entries that have some."""


class Inspected(NamedTuple):
    """The findings of an inspection."""

    n_records: int
    damaged: Mapping[str, str]
    """what is wrong with each damaged record, by key"""


def inspect_records(store: Store) -> Inspected:
    """Read all records of a store. It takes some calls of the store for each job ever made. Raises StoreUnavailable."""
    with ThreadPoolExecutor(_THREADS, "inspect") as threads:
        n_records = sum(sum(threads.map(partial(_inspect, store, part), store.children(part))) for part in _FOLDERS)
    return Inspected(n_records, store.damage.found)


def _inspect(store: Store, part: str, entry: str) -> int:
    """Read the records of an entry, such as a job; returns their number."""
    prefix = f"{part}/{entry}"
    keys = [
        prefix,
        *_below(store, prefix),
        *(key for folder in _FOLDERS[part] for key in _below(store, f"{prefix}/{folder}")),
    ]
    found = [(key, kind) for key in keys for pattern, kind in _KINDS.items() if re.fullmatch(pattern, key)]
    for key, kind in found:
        json_records.find_readable(store, key, kind)
    return len(found)


def _below(store: Store, prefix: str) -> Iterator[str]:
    return (f"{prefix}/{name}" for name in store.children(prefix))
