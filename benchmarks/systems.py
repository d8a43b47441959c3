"""All systems on the papers' sets: ``python -m benchmarks.systems`` writes their table into ``docs/papers.md``;
with the argument ``kept`` it measures nothing.

What was measured is kept in ``docs/data/papers.csv``: a line that is deleted is measured again.
"""

import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.base import DOCS, machine, put_section, table
from benchmarks.papers import Draw, Run, drawn_evenly, official, trained

CELLS = DOCS / "data" / "papers.csv"
_HEADS = ("set", "system", "draws", "error", "seconds")
_BAND = {"kernel": "rbf", "gamma": "median"}
_SHARES: dict[str, Any] = {"positive_fraction": "labeled"}
_GRAPH = {"lambda_graph": 1.0, "neighbours": 5}

SYSTEMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "svm": ({}, {}),
    "tsvm": (_SHARES, _SHARES),
    "da": (_SHARES, _SHARES),
    "cuts3vm": (_SHARES, _SHARES),
    "kernel_svm": ({"kernel": "linear"}, {}),
    "cccp_tsvm": ({**_SHARES, "kernel": "linear"}, _SHARES),
    "gradient_tsvm": (_SHARES, {**_SHARES, **_BAND}),
    "lds": (_SHARES, {**_SHARES, **_BAND}),
    "kernel_da": ({**_SHARES, "kernel": "linear"}, {**_SHARES, **_BAND}),
    "laplacian_svm": ({**_GRAPH, "lambda": 1e-4}, {**_GRAPH, **_BAND, "lambda": 1e-6}),
    "laplacian_rls": ({**_GRAPH, "lambda": 1e-4}, {**_GRAPH, **_BAND, "lambda": 1e-6}),
    "s4vm": (_SHARES, {**_SHARES, **_BAND}),
}
"""options of each system on texts and on vectors: the same on all sets, none chosen by an error"""

_BINARY = 2


class Set(NamedTuple):
    """A set of the papers, and the errors in % that they print by system."""

    draws: Callable[[], list[Draw]]
    is_text: bool
    n_draws: int
    printed: dict[str, str]


def _ssl(name: str, labels: int, lds: str, rls: str) -> Set:
    draws = partial(official, f"ssl-{name}", f"labeled{labels}", 1 if name == "coil" else _BINARY)
    return Set(draws, name == "text", 1 if name == "coil" else _BINARY, {"lds": lds, "laplacian_rls": rls})


def _printed(svm: str, cccp: str, gradient: str, lds: str, laplacian: str, annealing: str) -> dict[str, str]:
    return {
        "kernel_svm": svm,
        "cccp_tsvm": cccp,
        "gradient_tsvm": gradient,
        "lds": lds,
        "laplacian_svm": laplacian,
        "kernel_da": annealing,
    }


SETS = {
    "g50c": Set(partial(official, "g50c"), False, 10, _printed("8.3", "5.6", "5.8", "5.6", "5.4", "7.0")),
    "pcmac (Text)": Set(partial(official, "pcmac"), True, 10, _printed("18.9", "8.0", "5.7", "5.1", "", "5.7")),
    "ssl-g241c, 10": _ssl("g241c", 10, "28.9", "44.0"),
    "ssl-g241c, 100": _ssl("g241c", 100, "18.0", "24.4"),
    "ssl-digit1, 10": _ssl("digit1", 10, "15.6", "5.4"),
    "ssl-digit1, 100": _ssl("digit1", 100, "3.5", "2.9"),
    "ssl-usps, 10": _ssl("usps", 10, "17.6", "19.0"),
    "ssl-usps, 100": _ssl("usps", 100, "5.0", "4.7"),
    "ssl-text, 10": _ssl("text", 10, "27.2", "33.7"),
    "ssl-text, 100": _ssl("text", 100, "23.2", "23.6"),
    "ssl-coil, 10": _ssl("coil", 10, "61.9", "54.5"),
    "ssl-coil, 100": _ssl("coil", 100, "13.7", "11.9"),
    "uspst": Set(
        partial(drawn_evenly, "usps", 5, "test"), False, 5, _printed("23.2", "16.6", "17.6", "15.8", "12.7", "27.2")
    ),
    "coil20": Set(partial(drawn_evenly, "coil20", 2), False, 5, _printed("24.6", "16.7", "17.6", "4.9", "4.0", "12.3")),
}


def measured(name: str, system: str) -> dict[str, str]:
    """A cell of the table: the mean error in % of a system on the draws of a set, and the mean processor seconds."""
    chosen = SETS[name]
    draws, errors, began = chosen.draws()[: chosen.n_draws], [], time.process_time()
    for draw in draws:
        run = Run("", name, system, SYSTEMS[system][0 if chosen.is_text else 1], "")
        errors.append(trained(run, draw)[1])
    seconds = (time.process_time() - began) / len(draws)
    return dict(
        zip(_HEADS, (name, system, str(len(draws)), f"{100 * np.mean(errors):.1f}", f"{seconds:.1f}"), strict=True)
    )


def kept_cells() -> list[dict[str, str]]:
    """The cells that were measured before."""
    return list(csv.DictReader(CELLS.read_text().splitlines())) if CELLS.exists() else []


def all_cells() -> list[dict[str, str]]:
    """The cells that are kept, and those that are missing, measured; each is kept at once."""
    found = kept_cells()
    known = {(cell["set"], cell["system"]) for cell in found}
    for name in SETS:
        for system in SYSTEMS:
            if (name, system) not in known:
                found.append(measured(name, system))
                print(*found[-1].values(), sep=" | ", file=sys.stderr, flush=True)
                with CELLS.open("w", newline="") as out:
                    writer = csv.DictWriter(out, _HEADS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(found)
    return found


def main(only_kept: bool = False) -> None:
    """Measure the missing cells, unless only kept ones are wanted, and put the section into the page."""
    cells = {(cell["set"], cell["system"]): cell for cell in (kept_cells() if only_kept else all_cells())}
    lines, sentences = [], []
    for name, each in SETS.items():
        errors = {system: float(cells[name, system]["error"]) for system in SYSTEMS if (name, system) in cells}
        first, second, *_ = sorted(errors, key=lambda system: errors[system])
        sentences.append(f"- {name}: `{first}` ({errors[first]:.1f}), then `{second}` ({errors[second]:.1f}).")
        own = []
        for system in SYSTEMS:
            printed = f" ({each.printed[system]})" if each.printed.get(system) else ""
            own.append(f"{errors[system]:.1f}{printed}" if system in errors else printed)
        lines.append([name, str(each.n_draws), *own])
    seconds = [
        f"{np.mean([float(cell['seconds']) for (_, own), cell in cells.items() if own == system]):.1f}"
        for system in SYSTEMS
    ]
    lines.append(["seconds, mean", "", *seconds])
    text = (
        f"Made by `python -m benchmarks.systems`, on {machine()}, while others used the machine; seconds are of its "
        "processors. Errors in %, the papers' in brackets, on the first draws of labels. Options are the same on all "
        "sets, and none is chosen by an error, as most of the papers' are: RBF kernels with gamma = median on vectors, "
        "linear ones on texts, the fractions of the labels; C and gamma of `kernel_svm` and `cccp_tsvm` by "
        "cross-validation."
    )
    body = f"{text}\n\n{table(['set, labels', 'draws', *(f'`{system}`' for system in SYSTEMS)], lines)}"
    put_section("papers.md", f"## All systems\n\n{body}\n\nThe least errors:\n\n" + "\n".join(sentences))


if __name__ == "__main__":
    main("kept" in sys.argv)
