"""``halfmoon doctor``: checks settings, access, Redis, store, disk and kernels, or a file; names the remedies."""

import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from pydantic import ValidationError
from redis.exceptions import RedisError

from app.cli.store import store_address, used_folder
from app.codecs.base import BLOCK_BYTES, COLUMNS
from app.codecs.dispatch import ENDINGS, body_decoder, check_size
from app.datasets.documents import Fields, stored_documents
from app.errors import InvalidRequest, UnsupportedMediaType, shortened
from app.http.sockets.listener import check_exposure
from app.local import valkey
from app.settings import GatewaySettings
from core.documents.kinds import KINDS
from core.errors import Fault, InvalidDocuments
from storage.errors import CannotStart, LimitExceeded, StoreUnavailable, Unavailable
from storage.process.settings import unknown_variables
from storage.queue.connection import connect, redis_error_text
from storage.queue.redis_state import RedisState
from storage.records import Dataset
from storage.repositories.api_keys import ApiKeys
from storage.repositories.datasets import Datasets
from storage.store import open_store
from storage.upkeep.binding import check_first_writer, check_format
from storage.upkeep.inspection import inspect_records

_MIN_FREE_BYTES = 2**30
_OTHER_FILES = 256
"""Files that a gateway may have open beside its connections."""
_SLOW_SECONDS = 0.5
_MOST_NAMED = 20
"""Damaged records that are named."""


_MOST_CLASSES = 12
_SHOWN_DOCUMENTS = 3
_SHOWN = 70


class Finding(NamedTuple):
    """The result of one check."""

    subject: str
    good: bool
    """False: something must be fixed."""
    message: str


def report(found: Iterable[Finding]) -> int:
    """Print findings as they come; the exit code is 0 if nothing must be fixed."""
    good = True
    for finding in found:
        print(f"{'ok ' if finding.good else 'FIX'}  {finding.subject:9}  {finding.message}")
        good &= finding.good
    return 0 if good else 1


Check = Callable[[GatewaySettings], Iterator[Finding]]


def examine(data: Path | None = None) -> Iterator[Finding]:
    """The findings of all checks; where a setting is wrong, of the settings alone.

    ``data`` is the data folder of a ``halfmoon up``: then its store and its Valkey are looked at.
    """
    for name in unknown_variables(GatewaySettings):
        yield Finding("settings", False, f"{name} is no setting; correct its spelling, or remove it")
    try:
        settings = GatewaySettings()
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            yield Finding("settings", False, f"HALFMOON_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}")
        return
    yield Finding("settings", True, f"{len(settings.model_fields_set)} are set, the others have their default")
    folder = used_folder(data, settings)
    if folder is not None:
        yield Finding("settings", True, f"the store and Valkey are those of `halfmoon up` in {folder}")
        own = {"store_url": (folder.absolute() / "store").as_uri()}
        if (socket := folder.absolute() / "valkey" / "valkey.sock").exists():
            own["redis_url"] = valkey.url(socket)
        settings = settings.model_copy(update=own)
    checks: list[Check] = [_access, _redis, _store, _records, _disk, _kernels]
    for check in checks:
        yield from check(settings)


def _access(settings: GatewaySettings) -> Iterator[Finding]:
    try:
        check_exposure(settings.access, settings.host)
    except CannotStart as error:
        yield Finding("access", False, str(error))
        return
    if settings.access != "keys":
        yield Finding("access", True, f"{settings.access}: no key is required")
        return
    try:
        now, keys = datetime.now(UTC), ApiKeys(open_store(settings.store_url, settings.cache_dir))
        n_valid = sum(listed.state(now) == "valid" for listed in keys.every())
    except (ValueError, Unavailable):
        return  # the check of the store reports it
    advice = "" if n_valid else ": no caller is accepted; make one with `halfmoon keys create --name … --scope …`"
    yield Finding("access", n_valid > 0, f"{n_valid} keys are valid{advice}")


def _redis(settings: GatewaySettings) -> Iterator[Finding]:
    try:
        with connect(settings.redis_url, settings.redis_timeout_seconds) as redis:
            started = time.monotonic()
            redis.set(f"{settings.queue}:probe", b"", px=1000)
            yield _timed(
                "redis", "a write", time.monotonic() - started, "jobs start late and progress is reported late"
            )
            try:
                found = cast("dict[str, str]", redis.config_get("maxmemory-policy"))
            except RedisError:
                yield Finding(
                    "redis",
                    True,
                    "does not report its configuration; make sure that its maxmemory-policy is noeviction",
                )
            else:
                policy = found.get("maxmemory-policy", "noeviction")
                kept = policy == "noeviction"
                advice = "" if kept else ": it may drop queued jobs, which then start late; set noeviction"
                yield Finding("redis", kept, f"maxmemory-policy is {policy}{advice}")
            n_workers = len(RedisState(redis, settings.queue).workers())
            advice = "" if n_workers else ": jobs wait until one is started with `halfmoon worker`"
            yield Finding("workers", n_workers > 0, f"{n_workers} are alive{advice}")
    except (RedisError, OSError, ValueError, Unavailable) as error:
        yield Finding(
            "redis",
            False,
            f"{settings.redis_url.rpartition('@')[2]}: {redis_error_text(error)}; does it run, is "
            "HALFMOON_REDIS_URL right, does it accept writes?",
        )


def _store(settings: GatewaySettings) -> Iterator[Finding]:
    try:
        # where nothing says which store is meant none is made: keys would go there, and no service would read them
        store = open_store(store_address(None, settings, existing=False), settings.cache_dir)
        started = time.monotonic()
        # a key that exists must not be created again, and the format must be known: all guarantees of jobs depend on it
        try:
            check_format(store)
            check_first_writer(store)
        except CannotStart as error:
            yield Finding("store", False, str(error))
        else:
            yield Finding("store", True, "the first writer wins")
        yield _timed("store", "two writes and a deletion", time.monotonic() - started, "uploads and jobs start late")
        free = store.free()
        if free is not None:
            advice = "" if free > _MIN_FREE_BYTES else ": delete what is not needed, or set HALFMOON_KEEP_…"
            yield Finding("store", free > _MIN_FREE_BYTES, f"{free / 2**30:.1f} GiB are free{advice}")
    except (CannotStart, ValueError, StoreUnavailable) as error:
        yield Finding("store", False, f"{error}; is HALFMOON_STORE_URL right, and may this user write there?")


def _records(settings: GatewaySettings) -> Iterator[Finding]:
    """Every record of the store must be readable: the service goes on without a damaged one, but that does not come
    back by itself.
    """
    try:
        found = inspect_records(open_store(settings.store_url, settings.cache_dir))
    except (ValueError, StoreUnavailable):
        return  # the check of the store reports it
    if not found.damaged:
        yield Finding("records", True, f"{found.n_records} can be read")
    for detail in islice(found.damaged.values(), _MOST_NAMED):
        yield Finding(
            "records", False, f"{detail}; restore it from a backup, or delete what it belongs to (docs/runbook.md)"
        )
    if len(found.damaged) > _MOST_NAMED:
        yield Finding("records", False, f"{len(found.damaged) - _MOST_NAMED} more are damaged")


def _disk(settings: GatewaySettings) -> Iterator[Finding]:
    folder = settings.cache_dir or Path(tempfile.gettempdir())
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    free = shutil.disk_usage(existing).free
    advice = (
        "" if free > _MIN_FREE_BYTES else ": uploads and fetched files go there; choose another with HALFMOON_CACHE_DIR"
    )
    yield Finding("disk", free > _MIN_FREE_BYTES, f"{free / 2**30:.1f} GiB are free at {existing}{advice}")
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.max_connections + _OTHER_FILES
    advice = (
        f": raise it (ulimit -Hn) to {needed} or more, each of {settings.max_connections} connections takes "
        "one, or lower HALFMOON_MAX_CONNECTIONS"
    )
    yield Finding("disk", limit >= needed, f"{limit} files may be open{'' if limit >= needed else advice}")


def _kernels(settings: GatewaySettings) -> Iterator[Finding]:
    started = time.monotonic()
    try:
        from workers.worker.warm_up import warm_up

        warm_up()
    except CannotStart as error:
        yield Finding("kernels", False, str(error))
        return
    yield Finding("kernels", True, f"ready in {time.monotonic() - started:.1f} s under Python {sys.version.split()[0]}")


def _timed(subject: str, what: str, seconds: float, consequence: str) -> Finding:
    good = seconds < _SLOW_SECONDS
    return Finding(
        subject, good, f"{what} in {1000 * seconds:.1f} ms" + ("" if good else f", which is slow: {consequence}")
    )


def examine_documents(path: Path, query: Mapping[str, str]) -> Iterator[Finding]:
    """The findings about a file that is sent with these query parameters.

    It is read as an upload is, into a folder that is removed.
    """
    headers = _headers(path)
    if headers is None:
        yield Finding(
            "file",
            False,
            f"{path.name!r}: the end of the name says what a file is; known are .{', .'.join(ENDINGS)}; .gz may follow",
        )
        return
    encoding = f", {headers['content-encoding']}" if "content-encoding" in headers else ""
    yield Finding("file", True, f"{path} is read as {headers['content-type']}{encoding}")
    settings = GatewaySettings()
    try:
        with tempfile.TemporaryDirectory() as folder:
            datasets = Datasets(open_store(f"file://{folder}"), settings)
            dataset = _read(path, headers, query, datasets, settings)
            first = np.arange(min(_SHOWN_DOCUMENTS, dataset.n_documents))
            shown = stored_documents(datasets.open(dataset.id), first, datasets.fields(dataset.id))
            yield from _understood(dataset, list(shown.values()))
    except InvalidDocuments as error:
        for fault in error.faults or [Fault("", "", error.detail)]:
            yield Finding("documents", False, str(fault))
    except InvalidRequest as error:
        column = f"--{error.field} " if error.field in (*COLUMNS, "separator", "extra") else ""
        yield Finding("documents", False, f"{column}{error}")
    except (LimitExceeded, UnsupportedMediaType) as error:
        yield Finding("documents", False, str(error))


def _headers(path: Path) -> dict[str, str] | None:
    """Headers of an upload of the file; None if the end of its name is not known."""
    name = path.name.lower()
    gzipped = name.endswith(".gz") and ENDINGS.get(name.removesuffix(".gz").rpartition(".")[2]) is not None
    media_type = ENDINGS.get((name.removesuffix(".gz") if gzipped else name).rpartition(".")[2])
    if media_type is None:
        return None
    return {"content-type": media_type} | ({"content-encoding": "gzip"} if gzipped else {})


def _read(
    path: Path, headers: Mapping[str, str], query: Mapping[str, str], datasets: Datasets, settings: GatewaySettings
) -> Dataset:
    check_size(path.stat().st_size, settings.upload_bounds)
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        builder = stack.enter_context(datasets.builder())
        body = body_decoder(
            headers, settings.upload_bounds, lambda: stack.enter_context(tempfile.TemporaryFile()), query=query
        )
        for batch in body.read(iter(partial(file.read, BLOCK_BYTES), b"")):
            builder.add(batch)
        return builder.seal(body.warnings())


def _understood(dataset: Dataset, first: list[Fields]) -> Iterator[Finding]:
    size = "" if dataset.n_features is None else f", {dataset.n_features} features, {dataset.n_nonzeros} nonzeros"
    if dataset.parts:
        size = f": {', '.join(part.name for part in dataset.parts)}"
    yield Finding("documents", True, f"{dataset.n_documents} of {KINDS[dataset.kind]}{size}")
    for fields in first:
        content = next(
            (str(value) for name, value in fields.items() if name not in ("id", "label", "drawn", "fields")), ""
        )
        shown = shortened(" ".join(content[: 4 * _SHOWN].split()), _SHOWN)
        label = "no label" if fields["label"] is None else f"label {fields['label']!r}"
        yield Finding("", True, f"id {fields['id']!r}, {label}: {shown!r}")
    common = Counter({str(label): count for label, count in dataset.classes}).most_common()
    classes = ", ".join(f"{label} ({count})" for label, count in islice(common, _MOST_CLASSES))
    more = f" and {len(common) - _MOST_CLASSES} more" if len(common) > _MOST_CLASSES else ""
    yield Finding(
        "labels", True, f"{dataset.n_labeled} in {len(common)} classes: {classes}{more}" if common else "none"
    )
    for warning in dataset.warnings:
        yield Finding("warning", True, warning)
