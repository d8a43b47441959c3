"""Processors that this process may use: by its affinity, and by the quota of its container (cgroup)."""

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_processors(cgroup: Path = _CGROUP) -> int:
    """Number of processors, at least one. A part of one counts as a whole: so many threads are slowed down, one fewer would leave a part unused."""
    available, quota = len(os.sched_getaffinity(0)), _quota(cgroup)
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
