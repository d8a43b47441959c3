"""The ramp loss against the hinge loss: Table 1.1 and Figure 1.2."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.base import Figure, table
from benchmarks.kernel.chosen import Chosen
from benchmarks.kernel.fits import Fit, fit_split
from benchmarks.kernel.plots import Panel, draw
from benchmarks.kernel.sets import SPLITS, Split
from benchmarks.kernel.small import figures_table, told

TABLE_11 = {
    "Waveform": (0.088, 983, 0.088, 865),
    "Banana": (0.095, 1029, 0.095, 891),
    "USPS+N": (0.005, 3317, 0.005, 601),
    "Adult": (0.151, 11347, 0.150, 4588),
}
"""of the paper: error and support vectors with the hinge loss, then with the ramp loss"""
WITHIN = 0.003
SIZES = {"USPS+N": (900, 1800, 3600, 7291), "Adult": (2000, 4000, 8000, 16_000)}
CURVES = {"hinge": None, "s = −1": -1.0, "s = 0": 0.0}
ALONG = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75)
"""values of s along the curve of error against support vectors"""
ROWS_ALONG = 8000


def table_11(chosen: Chosen) -> str:
    """Errors and support vectors of both losses, means over the splits."""
    figures, lines = [], []
    for name, (make, count) in SPLITS.items():
        paper, options = TABLE_11[name], chosen["table 1.1"][name]
        hinge = [fit_split(make(seed), "kernel_svm", options["hinge"]) for seed in range(count)]
        ramp = [fit_split(make(seed), "ramp_svm", options["ramp"]) for seed in range(count)]
        figures.append(Figure(f"{name}: error, ramp minus hinge", _error(ramp) - _error(hinge), WITHIN, "", rival=None))
        figures.append(Figure(f"{name}: support vectors, ramp / hinge", _support(ramp) / _support(hinge), paper[3] / paper[1], ""))
        for loss, fits, reference in (("hinge", hinge, paper[:2]), ("ramp", ramp, paper[2:])):
            cells = [f"{100 * _error(fits):.2f} %", f"{_support(fits):.0f}", f"{100 * reference[0]:.1f} %", str(reference[1])]
            lines.append([name, loss, *cells, told(options[loss]), str(count), f"{np.mean([fit.seconds for fit in fits]):.2f}"])
    heads = ["set", "loss", "error", "support vectors", "paper: error", "support vectors", "hyper-parameters", "splits", "seconds a split"]
    return f"{table(heads, lines)}\n{figures_table(figures, '')}"


def figure_12(chosen: Chosen, target: Path) -> str:
    """Support vectors against training size, and error against support vectors along s, drawn; returns what is behind the drawing."""
    lines: list[list[object]] = []
    drawn = []
    for name, sizes in SIZES.items():
        options = {key: value for key, value in chosen["table 1.1"][name]["hinge"].items() if key != "s"}
        whole = SPLITS[name][0](0)
        curves = {label: [_fit(_first(whole, size), options, s).n_support for size in sizes] for label, s in CURVES.items()}
        grown = {label: (sizes, counts) for label, counts in curves.items()}
        drawn.append(Panel(name, grown, "training rows", "support vectors", logarithmic=True))
        lines += [[name, label, *counts] for label, counts in curves.items()]
        part = _first(whole, ROWS_ALONG)
        fits = [_fit(part, options, s) for s in ALONG]
        hinge = _fit(part, options, None)
        along = ([fit.n_support for fit in fits], [100 * fit.error for fit in fits])
        curve = {"ramp, s beside the points": along, "hinge": ([hinge.n_support], [100 * hinge.error])}
        drawn.append(Panel(f"{name}, {len(part.y)} training rows", curve, "support vectors", "test error, %", names=[f"{s:g}" for s in ALONG]))
    draw(drawn, target)
    heads = ["set", "loss", *(f"size {k + 1}" for k in range(4))]
    sizes_told = "; ".join(f"{name}: {', '.join(map(str, sizes))} rows" for name, sizes in SIZES.items())
    return f"![Figure 1.2]({target.name})\n\n{table(heads, lines)}\nSizes: {sizes_told}.\n"


def _fit(split: Split, options: Mapping[str, Any], s: float | None) -> Fit:
    return fit_split(split, "kernel_svm", options) if s is None else fit_split(split, "ramp_svm", {**options, "s": s})


def _first(split: Split, size: int) -> Split:
    order = np.random.default_rng(7).permutation(len(split.y))[:size]
    return split._replace(X=split.X[order], y=split.y[order])


def _error(fits: list[Fit]) -> float:
    return float(np.mean([fit.error for fit in fits]))


def _support(fits: list[Fit]) -> float:
    return float(np.mean([fit.n_support for fit in fits]))
