"""Runs the benchmarks of the service and of the solvers and writes ``docs/benchmarks.md`` with its plot:

``python -m benchmarks [section …]``.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import encoders, pools, scale, service, solvers, vectors
from benchmarks.base import machine, renewed, write

_DOCS = Path(__file__).parent.parent / "docs"
_PAGE = "benchmarks.md"
_SECTIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "service": ("The service", service.section),
    "encoders": ("Encoders", encoders.section),
    "solvers": ("Solvers", solvers.section),
    "scale": ("Scale", lambda: scale.section(_DOCS / "scale.png")),
    "vectors": ("Dense vectors", vectors.section),
    "pools": ("Real pools", pools.section),
}
_HEAD = """# Benchmarks

Made by `python -m benchmarks`, which makes all sections, or those that are named.
Seconds are of one machine, so speed stands beside that of other programs.
The folder `HALFMOON_DATA` has the sets.
"""


def main(names: list[str]) -> None:
    """Measure, print, write; the sections that are not named stay as they are on the page."""
    page = _DOCS / _PAGE
    for name in names or _SECTIONS:
        title, section = _SECTIONS[name]
        made = f"## {title}\n\nMade by `python -m benchmarks {name}` on:\n{machine()}.\n\n{section()}"
        write(
            _PAGE,
            renewed(
                page.read_text() if page.exists() else "", _HEAD, [made], [title for title, _ in _SECTIONS.values()]
            ),
        )


if __name__ == "__main__":
    main(sys.argv[1:])
