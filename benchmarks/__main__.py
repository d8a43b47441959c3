"""Runs the benchmarks of the service and of the solvers: ``python -m benchmarks [section …]``.

Each writes its section of ``docs/benchmarks.md``; scale writes its plot, too.
"""

import sys
from collections.abc import Callable

from benchmarks import encoders, pools, scale, service, solvers, vectors
from benchmarks.base import DOCS, machine, put_section

_SECTIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "service": ("The service", service.section),
    "encoders": ("Encoders", encoders.section),
    "solvers": ("Solvers", solvers.section),
    "scale": ("Scale", lambda: scale.section(DOCS / "scale.png")),
    "vectors": ("Dense vectors", vectors.section),
    "pools": ("Real pools", pools.section),
}


def main(names: list[str]) -> None:
    """Measure, print, write; the sections that are not named stay as they are on the page."""
    for name in names or _SECTIONS:
        title, section = _SECTIONS[name]
        made = f"## {title}\n\nMade by `python -m benchmarks {name}` on:\n{machine()}.\n\n{section()}"
        put_section("benchmarks.md", made)


if __name__ == "__main__":
    main(sys.argv[1:])
