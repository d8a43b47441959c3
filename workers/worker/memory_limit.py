"""Limit of the memory of this process: that of its container (cgroup), else that of the machine."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def memory_limit(cgroup: Path = _CGROUP) -> int:
    """Bytes that this process may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (_limit(cgroup / name) for name in ("memory.max", "memory/memory.limit_in_bytes"))
    return min([machine, *(limit for limit in limits if limit is not None)])


def _limit(path: Path) -> int | None:
    """The number in a file of the cgroup; None if there is no such file, or no limit (``max``)."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
