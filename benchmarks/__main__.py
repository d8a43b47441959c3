"""Runs every benchmark of the solvers and writes ``docs/benchmarks.md`` with its plots: ``python -m benchmarks [section …]``."""

import sys
from pathlib import Path

from benchmarks import pools, scale, solvers
from benchmarks.base import machine, write

_DOCS = Path(__file__).parent.parent / "docs"
_SECTIONS = {"solvers": solvers.section, "scale": lambda: scale.section(_DOCS / "scale.png"), "pools": pools.section}


def main(names: list[str]) -> None:
    """Measure, print, write; the service has its own page (``python -m benchmarks.service``)."""
    head = (
        "# Benchmarks of the solvers\n\nMade by `python -m benchmarks` on: "
        f"{machine()}.\nSpeed is told as ratios within one run: a unit is one SciPy float64 `X @ p` plus one `X.T @ z` on the same data.\n"
    )
    write("benchmarks.md", "\n".join([head, *(_SECTIONS[name]() for name in names or _SECTIONS)]))


if __name__ == "__main__":
    main(sys.argv[1:])
