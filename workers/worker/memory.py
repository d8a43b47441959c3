"""How much memory this process may use."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_memory(cgroup: Path = _CGROUP) -> int:
    """Bytes: the machine's, or what its container is bounded to."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    bounds = (_bound(cgroup / name) for name in ("memory.max", "memory/memory.limit_in_bytes"))
    return min([machine, *(bound for bound in bounds if bound is not None)])


def _bound(path: Path) -> int | None:
    """The number in a file of the cgroup; None where there is none, as where nothing is bounded (``max``)."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
