"""All systems on the papers' sets: ``python -m benchmarks.systems`` writes their table into ``docs/papers.md``, and
that of the options that err least; with the argument ``kept`` it measures nothing.

What was measured is kept in ``docs/data/papers.csv``: a line that is deleted is measured again.
"""

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.base import DOCS, machine, put_section, table
from benchmarks.papers import Draw, Run, breast, drawn_evenly, official, trained, windows_mac
from core.kernels.gamma import resolve_kernel

CELLS = DOCS / "data" / "papers.csv"
_HEADS = ("set", "system", "options", "draws", "error", "seconds")
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
    "lds": ({**_SHARES, "C": 1.0}, {**_SHARES, **_BAND, "C": 1.0}),
    "kernel_da": ({**_SHARES, "kernel": "linear"}, {**_SHARES, **_BAND}),
    "laplacian_svm": ({**_GRAPH, "lambda": 1e-4}, {**_GRAPH, **_BAND, "lambda": 1e-6}),
    "laplacian_rls": ({**_GRAPH, "lambda": 1e-4}, {**_GRAPH, **_BAND, "lambda": 1e-6}),
    "s4vm": (_SHARES, {**_SHARES, **_BAND}),
    "ctsvm": ({**_SHARES, "kernel": "linear"}, {**_SHARES, "kernel": "linear"}),
}
"""options of each system on texts and on vectors: the same on all sets, none chosen by an error; ``ctsvm``, whose time
grows with the cube of the documents, is for the sets of its paper"""
SUMS = ("gradient_tsvm", "lds")
"""systems of Chapelle & Zien, whose C weighs each document, with a label or without"""

_WIDTHS, _COSTS, _RIDGES = (0.25, 1.0, 4.0), (1.0, 10.0, 100.0), (1e-3, 1e-4)
_GRAPHS: list[dict[str, Any]] = [
    {"width": 1.0, "lambda": 1e-6, "neighbours": neighbours, "power": power}
    for neighbours, power in ((2, 1), (5, 1), (10, 2), (50, 5))
]
GRIDS: dict[str, list[dict[str, Any]]] = {
    "gradient_tsvm": [{"width": width, "C": C} for width in _WIDTHS for C in _COSTS],
    "cccp_tsvm": [{"width": width, "C": C, "s": 0.0} for width in _WIDTHS for C in _COSTS],
    "kernel_da": [{"width": width, "lambda": ridge} for width in _WIDTHS for ridge in _RIDGES],
    "lds": [{"rho": rho} for rho in (1.0, 2.0, 4.0, 8.0)],
    "laplacian_svm": _GRAPHS,
    "laplacian_rls": _GRAPHS,
}
"""options to choose from by the errors, as the papers choose them; ``width`` is gamma of an RBF kernel, in units of
``median``"""
GRID_SETS, _GRID_DRAWS = ("g50c", "pcmac (Text)", "coil20", "uspst"), 3


class Set(NamedTuple):
    """A set of the papers, and the errors in % that they print by system."""

    draws: Callable[[], list[Draw]]
    is_text: bool
    n_draws: int
    printed: dict[str, str]
    of_lds: int = 0
    """draws of ``lds``, if they are others"""


def _ssl(name: str, labels: int, lds: str, rls: str, of_lds: int = 3) -> Set:
    draws, few = partial(official, f"ssl-{name}", f"labeled{labels}"), 1 if name == "coil" else 2
    return Set(draws, name == "text", few, {"lds": lds, "laplacian_rls": rls}, of_lds)


def _printed(
    cuts3vm: str, svm: str, cccp: str, gradient: str, lds: str, laplacian: str, annealing: str
) -> dict[str, str]:
    return {
        "cuts3vm": cuts3vm,
        "kernel_svm": svm,
        "cccp_tsvm": cccp,
        "gradient_tsvm": gradient,
        "lds": lds,
        "laplacian_svm": laplacian,
        "kernel_da": annealing,
    }


SETS = {
    "g50c": Set(partial(official, "g50c"), False, 10, _printed("4.1", "8.3", "5.6", "5.8", "5.6", "5.4", "7.0")),
    "pcmac (Text)": Set(
        partial(official, "pcmac"), True, 10, _printed("5.3", "18.9", "8.0", "5.7", "5.1", "", "5.7"), 3
    ),
    "ssl-g241c, 10": _ssl("g241c", 10, "28.9", "44.0", 5),
    "ssl-g241c, 100": _ssl("g241c", 100, "18.0", "24.4", 5),
    "ssl-digit1, 10": _ssl("digit1", 10, "15.6", "5.4", 5),
    "ssl-digit1, 100": _ssl("digit1", 100, "3.5", "2.9"),
    "ssl-usps, 10": _ssl("usps", 10, "17.6", "19.0"),
    "ssl-usps, 100": _ssl("usps", 100, "5.0", "4.7", 5),
    "ssl-text, 10": _ssl("text", 10, "27.2", "33.7"),
    "ssl-text, 100": _ssl("text", 100, "23.2", "23.6", 5),
    "ssl-coil, 10": _ssl("coil", 10, "61.9", "54.5", 1),
    "ssl-coil, 100": _ssl("coil", 100, "13.7", "11.9", 1),
    "uspst": Set(
        partial(drawn_evenly, "usps", 5, "test"),
        False,
        5,
        _printed("16.1", "23.2", "16.6", "17.6", "15.8", "12.7", "27.2"),
        3,
    ),
    "coil20": Set(
        partial(drawn_evenly, "coil20", 2), False, 5, _printed("21.1", "24.6", "16.7", "17.6", "4.9", "4.0", "12.3"), 3
    ),
    "Breast, 20": Set(breast, False, 10, {"svm": "3.5", "gradient_tsvm": "2.8", "cccp_tsvm": "3.1", "ctsvm": "2.2"}),
    "WinMac 300, 20": Set(
        partial(windows_mac, 300, 20),
        True,
        10,
        {"svm": "42.4", "gradient_tsvm": "19.0", "cccp_tsvm": "15.7", "ctsvm": "15.2"},
    ),
}


def measured(name: str, system: str, changes: str) -> dict[str, str]:
    """A cell of the table: the mean error in % of a system on the draws of a set, and the mean processor seconds.

    ``changes`` is a JSON object of other options, by which few draws are measured, or empty.
    """
    chosen = SETS[name]
    options = SYSTEMS[system][0 if chosen.is_text else 1] | json.loads(changes or "{}")
    count = (chosen.of_lds if system == "lds" else 0) or chosen.n_draws
    draws = chosen.draws()[: _GRID_DRAWS if changes else count]
    if width := options.pop("width", None):
        median = resolve_kernel("rbf", "median", 3, 0.0, draws[0].rows).gamma
        options |= {"kernel": "rbf", "gamma": width * median}
    run, began = Run("", name, system, options, "", sums="C" in options and system in SUMS), time.process_time()
    errors = [trained(run, draw)[1] for draw in draws]
    seconds = (time.process_time() - began) / len(draws)
    figures = (str(len(draws)), f"{100 * np.mean(errors):.1f}", f"{seconds:.1f}")
    return dict(zip(_HEADS, (name, system, changes, *figures), strict=True))


def kept_cells() -> list[dict[str, str]]:
    """The cells that were measured before."""
    return list(csv.DictReader(CELLS.read_text().splitlines())) if CELLS.exists() else []


def _wanted() -> Iterator[tuple[str, str, str]]:
    for name, each in SETS.items():
        yield from ((name, system, "") for system in SYSTEMS if system != "ctsvm" or system in each.printed)
    for name in GRID_SETS:
        yield from ((name, system, json.dumps(changes)) for system in GRIDS for changes in ({}, *GRIDS[system]))


def all_cells() -> list[dict[str, str]]:
    """The cells that are kept, and those that are missing, measured; each is kept at once."""
    found = kept_cells()
    known = {(cell["set"], cell["system"], cell["options"]) for cell in found}
    for wanted in _wanted():
        if wanted not in known:
            found.append(measured(*wanted))
            print(*found[-1].values(), sep=" | ", file=sys.stderr, flush=True)
            with CELLS.open("w", newline="") as out:
                writer = csv.DictWriter(out, _HEADS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(found)
    return found


def chosen_options(cells: list[dict[str, str]]) -> list[list[str]]:
    """A line for each set and system with a grid: the error by the options of the table, by those of the grid that err
    least, what is printed, and these options.
    """
    lines = []
    for name in GRID_SETS:
        for system in GRIDS:
            own = [cell for cell in cells if (cell["set"], cell["system"]) == (name, system) and cell["options"]]
            if len(own) > 1:
                best, table_s = min(own, key=lambda cell: float(cell["error"])), own[0]["error"]
                given = ", ".join(f"`{key}` {value:g}" for key, value in json.loads(best["options"]).items())
                printed = SETS[name].printed.get(system, "")
                lines.append([name, f"`{system}`", own[0]["draws"], table_s, best["error"], printed, given])
    return lines


def main(only_kept: bool = False) -> None:
    """Measure the missing cells, unless only kept ones are wanted, and put the section into the page."""
    found = kept_cells() if only_kept else all_cells()
    cells = {(cell["set"], cell["system"]): cell for cell in found if not cell["options"]}
    lines, sentences = [], []
    for name, each in SETS.items():
        errors = {system: float(cells[name, system]["error"]) for system in SYSTEMS if (name, system) in cells}
        first, second, *_ = sorted(errors, key=lambda system: errors[system])
        least = min(each.printed, key=lambda system: float(each.printed[system] or "inf"))
        sentences.append(
            f"- {name}: `{first}` ({errors[first]:.1f}), then `{second}` ({errors[second]:.1f}); "
            f"in the papers `{least}` ({each.printed[least]})."
        )
        own = []
        for system in SYSTEMS:
            printed = f" ({each.printed[system]})" if each.printed.get(system) else ""
            own.append(f"{errors[system]:.1f}{printed}" if system in errors else printed)
        lines.append(
            [
                name,
                f"{each.n_draws}, {each.of_lds}" if each.of_lds not in (0, each.n_draws) else str(each.n_draws),
                *own,
            ]
        )
    seconds = [
        f"{np.mean([float(cell['seconds']) for (_, own), cell in cells.items() if own == system]):.1f}"
        for system in SYSTEMS
    ]
    lines.append(["seconds, mean", "", *seconds])
    text = (
        f"Made by `python -m benchmarks.systems`, on {machine()}, while others used the machine; seconds are of its "
        "processors. Errors in %, the papers' in brackets, on the first draws of labels; where there are two numbers, "
        "the second is of `lds`. Options are the same on all sets, and none is chosen by "
        "an error, as most of the papers' are: RBF kernels with gamma = median on vectors, linear ones on texts, the "
        "fractions of the labels; C and gamma of `kernel_svm` and `cccp_tsvm` by cross-validation; of `lds` C = 1 for "
        "each document, as in its authors' program."
    )
    body = f"{text}\n\n{table(['set, labels', 'draws', *(f'`{system}`' for system in SYSTEMS)], lines)}"
    put_section("papers.md", f"## All systems\n\n{body}\n\nThe least errors:\n\n" + "\n".join(sentences))
    text = (
        f"The papers choose options by the errors on the documents without labels, `lds` apart. So does this table, of "
        f"a small grid on the first {_GRID_DRAWS} draws: errors in % with the options of the table of all systems, "
        "with those chosen, and in the papers. `width` is gamma in units of median, C weighs each document, of "
        "`gradient_tsvm` and `lds` also those without labels."
    )
    heads = ["set", "method", "draws", "table", "chosen", "printed", "options"]
    put_section("papers.md", f"## Options chosen by errors\n\n{text}\n\n{table(heads, chosen_options(found))}")


if __name__ == "__main__":
    main("kept" in sys.argv)
