"""``halfmoon doctor``: looks at everything that the service needs and says what to mend."""

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, cast

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import RedisError

from app.http.listener import check_exposure
from app.settings import GatewaySettings
from workers.errors import CannotStart, StoreUnavailable, Unavailable
from workers.names import new_id
from workers.queue.connect import connect, why
from workers.queue.redis_state import Live
from workers.repositories.api_keys import ApiKeys
from workers.settings import unknown_variables
from workers.store import Store, open_store

_ROOM_BYTES = 2**30
_OTHER_FILES = 256
"""that a gateway may have open beside connections: what it stores and reads, maps and listens to"""
_SLOW_SECONDS = 0.5


class Finding(NamedTuple):
    """One thing that was looked at."""

    subject: str
    good: bool
    """false: something must be mended"""
    told: str


Check = Callable[[GatewaySettings], Iterator[Finding]]


def doctor() -> int:
    """Look at everything and tell; the exit code is 0 if nothing must be mended."""
    findings = list(examine())
    for finding in findings:
        print(f"{'ok  ' if finding.good else 'MEND'}  {finding.subject:9}  {finding.told}")
    return 0 if all(finding.good for finding in findings) else 1


def examine() -> Iterator[Finding]:
    """What there is to tell; without settings nothing else can be looked at."""
    for name in unknown_variables(GatewaySettings):
        yield Finding("settings", False, f"{name} is no setting; look for a misspelling, or remove it")
    try:
        settings = GatewaySettings()
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            yield Finding("settings", False, f"HALFMOON_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}")
        return
    yield Finding("settings", True, f"{len(settings.model_fields_set)} are set, the others have their defaults")
    checks: list[Check] = [_access, _redis, _store, _disk, _kernels]
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
        return  # told of the store
    advice = "" if n_valid else ": nobody can call; make one with `halfmoon keys create --name … --scope …`"
    yield Finding("access", n_valid > 0, f"{n_valid} keys are valid{advice}")


def _redis(settings: GatewaySettings) -> Iterator[Finding]:
    try:
        with connect(settings.redis_url, settings.redis_seconds) as redis:
            begun = time.monotonic()
            redis.set(f"{settings.queue}:probe", b"", px=1000)
            yield _timed("redis", "takes a write", time.monotonic() - begun, "jobs start late and progress lags")
            yield from _redis_settings(redis)
            n_workers = len(Live(redis, settings.queue).workers())
            advice = "" if n_workers else ": jobs wait until one is started with `halfmoon worker`"
            yield Finding("workers", n_workers > 0, f"{n_workers} have lately given a sign of life{advice}")
    except (RedisError, OSError, ValueError, Unavailable) as error:
        yield Finding(
            "redis", False, f"{settings.redis_url.rpartition('@')[2]}: {why(error)}; is it running, is HALFMOON_REDIS_URL right, may it be written?"
        )


def _redis_settings(redis: Redis) -> Iterator[Finding]:
    try:
        found = cast("dict[str, str]", redis.config_get("maxmemory-policy"))
    except RedisError:
        yield Finding("redis", True, "does not show its settings; see that its maxmemory-policy is noeviction")
        return
    policy = found.get("maxmemory-policy", "noeviction")
    advice = "" if policy == "noeviction" else ": it may drop queued jobs, which then start late; set noeviction"
    yield Finding("redis", policy == "noeviction", f"maxmemory-policy is {policy}{advice}")


def _store(settings: GatewaySettings) -> Iterator[Finding]:
    try:
        store = open_store(settings.store_url, settings.cache_dir)
        begun = time.monotonic()
        yield from _create_twice(store)
        yield _timed("store", "two writes and a deletion", time.monotonic() - begun, "uploads and jobs begin late")
        free = store.free()
        if free is not None:
            advice = "" if free > _ROOM_BYTES else ": delete what is not needed, or set HALFMOON_KEEP_…"
            yield Finding("store", free > _ROOM_BYTES, f"{free / 2**30:.1f} GiB are free{advice}")
    except (ValueError, StoreUnavailable) as error:
        yield Finding("store", False, f"{error}; is HALFMOON_STORE_URL right, and may this user write there?")


def _create_twice(store: Store) -> Iterator[Finding]:
    """What no two may create, one must be refused: everything that is promised of jobs rests on it."""
    key = f"doctor/{new_id('probe')}"
    first, second = store.create(key, b"1"), store.create(key, b"2")
    kept = store.read(key)
    store.delete(key)
    good = first and not second and kept == b"1"
    advice = "" if good else ": it does not honour conditional writes (If-None-Match: *) and cannot be used"
    yield Finding("store", good, f"the first writer wins{advice}" if good else f"a second writer is not refused{advice}")


def _disk(settings: GatewaySettings) -> Iterator[Finding]:
    folder = settings.cache_dir or Path(tempfile.gettempdir())
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    free = shutil.disk_usage(there).free
    advice = "" if free > _ROOM_BYTES else ": uploads and fetched files go there; choose another with HALFMOON_CACHE_DIR"
    yield Finding("disk", free > _ROOM_BYTES, f"{free / 2**30:.1f} GiB are free at {there}{advice}")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.max_connections + _OTHER_FILES
    advice = (
        f": raise it (ulimit -Hn) to {needed} or more, each of {settings.max_connections} connections takes one, or lower HALFMOON_MAX_CONNECTIONS"
    )
    yield Finding("disk", most >= needed, f"{most} files may be open{'' if most >= needed else advice}")


def _kernels(settings: GatewaySettings) -> Iterator[Finding]:
    begun = time.monotonic()
    try:
        from core.train import warm_up

        warm_up()
    except Exception as error:  # whatever Numba finds wrong with its cache or the processor
        yield Finding("kernels", False, f"cannot be compiled: {error}; NUMBA_CACHE_DIR must be a folder that can be written")
        return
    yield Finding("kernels", True, f"work, {time.monotonic() - begun:.1f} s after the start of Python {sys.version.split()[0]}")


def _timed(subject: str, what: str, seconds: float, consequence: str) -> Finding:
    good = seconds < _SLOW_SECONDS
    return Finding(subject, good, f"{what} in {1000 * seconds:.1f} ms" + ("" if good else f", which is slow: {consequence}"))
