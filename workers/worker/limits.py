"""What this process may use of its machine: memory and processors, by its cgroup."""

import math
import os
from pathlib import Path

from core.threads import available_processors

_CGROUP = Path("/sys/fs/cgroup")


def memory_limit(cgroup: Path = _CGROUP) -> int:
    """Bytes that this process may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (_limit(cgroup / name) for name in ("memory.max", "memory/memory.limit_in_bytes"))
    return min([machine, *(limit for limit in limits if limit is not None)])


def _limit(path: Path) -> int | None:
    """The number in a file of the cgroup; None if there is no such file, or no limit (``max``)."""
    words = _words(path)
    return int(words[0]) if words and words[0].isdecimal() else None


def usable_processors(cgroup: Path = _CGROUP) -> int:
    """Number of processors, at least one.

    A part of one counts as a whole: so many threads are slowed down, one fewer would leave a part unused.
    """
    available, quota = available_processors(), _quota(cgroup)
    return available if quota is None else max(1, min(available, quota))


def _quota(cgroup: Path) -> int | None:
    """Processors by the quota, None if there is none."""
    former = (cgroup / "cpu" / name for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    match _words(cgroup / "cpu.max") or [word for path in former for word in _words(path)]:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):
            return math.ceil(int(quota) / int(period))
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
