"""Yardsticks that need no solver, and annealing without its annealing: ``python -m benchmarks.yardsticks`` writes both
into ``docs/papers.md``.

On bent clusters the objective of the true labels is known: an end above it is a local minimum.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import put_section, table
from benchmarks.data import load
from benchmarks.papers import Draw, Run, official, trained
from core.documents.rows import SparseRows
from core.options.subspace import KernelAnnealingOptions
from core.problem import Problem
from tests.core.problems import rows_of, solve

_STARTS = 20
_MOONS, _NOISE = 200, 0.1
_CARS = (3, 6, 19)
"""objects of Coil20 that are toy cars"""
_RIDGE = 1e-3
_BAND: dict[str, Any] = {"kernel": "rbf", "gamma": "median"}
_SHARES: dict[str, Any] = {"positive_fraction": "labeled"}
METHODS: dict[str, dict[str, Any]] = {
    "kernel_da": {**_BAND, **_SHARES, "lambda": _RIDGE},
    "gradient_tsvm": {**_BAND, **_SHARES, "lambda": _RIDGE},
    "cccp_tsvm": {**_SHARES, "C": 10.0, "gamma": "median"},
    "lds": {**_BAND, **_SHARES, "lambda": _RIDGE},
    "laplacian_rls": {**_BAND, "lambda": 1e-6, "lambda_graph": 1.0},
}
_TEMPERATURES = (None, 10.0, 1.0, 0.1, 0.01)


def labeled_by_seed(X: Any, y: NDArray[Any], count: int) -> list[Draw]:
    """Draws of ``count`` labels of each class."""
    rows, found = rows_of(X), []
    for seed in range(_STARTS):
        rng = np.random.default_rng(seed)
        own = [rng.choice(np.flatnonzero(y == label), count, replace=False) for label in np.unique(y)]
        found.append(Draw(rows, y, np.sort(np.concatenate(own))))
    return found


def moons() -> list[Draw]:
    """Two half circles, each in the other's mouth, with a label on each."""
    rng, t = np.random.default_rng(0), np.linspace(0, np.pi, _MOONS // 2)
    arcs = [np.column_stack([np.cos(t), np.sin(t)]), np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])]
    return labeled_by_seed(
        np.concatenate(arcs) + _NOISE * rng.standard_normal((_MOONS, 2)), np.repeat([-1, 1], _MOONS // 2), 1
    )


def cars() -> list[Draw]:
    """Three toy cars from all sides, two labels each."""
    data = load("coil20")
    chosen = np.isin(data.y, _CARS)
    return labeled_by_seed(data.X[chosen], data.y[chosen], 2)


def objective_of(rows: SparseRows, truth: NDArray[np.bool_], labeled: NDArray[np.int64]) -> float:
    """The objective of ``kernel_da`` with the true labels of all rows, at its minimum over w: an SVM with as much total
    weight of the unlabeled rows as of the labeled ones.
    """
    costs = np.full(rows.n_rows, 1.0 / (rows.n_rows - len(labeled)))
    costs[labeled] = 1.0 / len(labeled)
    options = KernelAnnealingOptions.parse({**_BAND, "lambda": 0.5 * _RIDGE})
    return 2.0 * solve("kernel_da", Problem.of(rows, np.where(truth, 1.0, -1.0), costs), options).objective


def ends(draws: Sequence[Draw]) -> list[list[str]]:
    """A line for each method: its error, in how many starts it is below a tenth, and how often J ends above J of the
    true labels.
    """
    lines = []
    for method, options in METHODS.items():
        errors, above = [], 0
        for draw in draws:
            training, error = trained(Run("", "", method, options, ""), draw)
            errors.append(error)
            if method == "kernel_da":
                above += training.objective > true_objective(draw) * (1 + 1e-6)
        found = sum(error < 0.1 for error in errors)
        local = f"{above} of {_STARTS}" if method == "kernel_da" else ""
        lines.append([f"`{method}`", f"{100 * np.mean(errors):.1f}", f"{found} of {_STARTS}", local])
        print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    return lines


def true_objective(draw: Draw) -> float:
    """Sum over the two-class problems of the objective with the true labels."""
    classes = np.unique(draw.y)
    positives = classes[1:] if len(classes) == 2 else classes
    return sum(objective_of(draw.rows, draw.y == label, draw.labeled) for label in positives)


def temperatures() -> list[list[str]]:
    """Error and J of annealing, and of one temperature, on the first draws of pcmac."""
    lines = []
    for temperature in _TEMPERATURES:
        options = {**_SHARES, "fixed_temperature": temperature}
        found = [trained(Run("", "pcmac", "da", options, ""), draw) for draw in official("pcmac", count=5)]
        errors, objectives = [error for _, error in found], [training.objective for training, _ in found]
        name = "annealed" if temperature is None else f"{temperature:g}"
        lines.append([name, f"{100 * np.mean(errors):.1f}", f"{np.mean(objectives):.4f}"])
        print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    return lines


def main() -> None:
    """Measure both, and put their sections into the page."""
    heads = ["method", "mean error, %", "error below 10 %", "J above that of the true labels"]
    parts = [
        f"{title}:\n\n{table(heads, ends(make()))}" for title, make in (("Two moons", moons), ("Three cars", cars))
    ]
    text = (
        f"`python -m benchmarks.yardsticks` starts each method {_STARTS} times, each time with other labels: one of "
        "each moon, two of each car. J is the objective of `kernel_da`; the true labels have it with an SVM of all "
        "labels. An end above it is a local minimum, an end below it is where the objective misleads."
    )
    put_section("papers.md", f"## Bent clusters\n\n{text}\n\n" + "\n\n".join(parts))
    text = (
        "Figures 12 and 13 of Sindhwani & Keerthi 2006: `da` on five draws of pcmac, annealed and at one temperature "
        "T, in units of λ'."
    )
    put_section(
        "papers.md", f"## A fixed temperature\n\n{text}\n\n{table(['T', 'mean error, %', 'mean J'], temperatures())}"
    )


if __name__ == "__main__":
    main()
