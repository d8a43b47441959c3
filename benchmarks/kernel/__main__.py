"""Makes every figure of the kernel family and writes ``docs/kernel-figures.md`` with its drawings: ``python -m benchmarks.kernel [section …]``."""

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.base import machine, renewed, write
from benchmarks.kernel import defaults, iterations, large, robust, small
from benchmarks.kernel.chosen import chosen
from core.warm_up import warm_up

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = "kernel-figures.md"
_SECTIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "defaults": ("C and gamma by default", defaults.defaults),
    "universvm": ("The sets that UniverSVM was measured on: 100 labels, C = 10, γ from the median distance", lambda: small.universvm(chosen())),
    "table13": ("Table 1.3: few labels", lambda: small.table_13(chosen())),
    "table11": ("Table 1.1: hinge loss and ramp loss", lambda: robust.table_11(chosen())),
    "figure12": ("Figure 1.2: support vectors and s", lambda: robust.figure_12(chosen(), _DOCS / "kernel-figure-1-2.png")),
    "figure18": ("Figure 1.8: objective and error by iteration", lambda: iterations.figure_18(chosen(), _DOCS / "kernel-figure-1-8.png")),
    "adult": ("Adult beside scikit-learn", large.adult_beside_scikit_learn),
    "documents": ("Figure 1.9: reviews", lambda: large.documents(_DOCS / "kernel-figure-1-9.png")),
    "digits": ("Digits", large.digits),
}


def main(names: list[str]) -> None:
    """Measure, print, write; the sections that are not named stay as they are on the page."""
    warm_up()
    made = {_SECTIONS[name][0]: _SECTIONS[name][1]() for name in names or _SECTIONS}
    head = (
        f"# The kernel family against the reference figures\n\nMade by `python -m benchmarks.kernel` on:\n{machine()}.\n"
        "The paper is Collobert, Sinz, Weston & Bottou 2006, Trading convexity for scalability.\n"
        "`benchmarks/kernel/chosen.py` says how C, γ and s were chosen; elsewhere the tables name them.\n"
        "Seconds are those of whole trainings, from rows to model, one run each.\n"
        "Those in Tables 1.1 and 1.3 are for orientation only.\n"
    )
    page = _DOCS / _PAGE
    parts = [f"## {title}\n\n{text.strip()}" for title, text in made.items()]
    write(_PAGE, renewed(page.read_text() if page.exists() else "", head, parts, [title for title, _ in _SECTIONS.values()]))


if __name__ == "__main__":
    main(sys.argv[1:])
