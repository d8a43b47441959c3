"""Yardsticks that need no solver, and annealing without its annealing: ``python -m benchmarks.yardsticks`` writes both
into ``docs/papers.md``.

On bent clusters the objective of the true labels is known: an end above it is a local minimum.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.base import put_section, table
from benchmarks.data import load
from benchmarks.papers import Draw, Run, drawn_evenly, evenly, trained
from core.options.base import Options
from core.options.linear import SvmOptions
from core.options.subspace import KernelAnnealingOptions
from core.problem import Problem
from tests.core.problems import solve

_STARTS = 20
_MOONS, _NOISE = 200, 0.1
_CARS = (3, 6, 19)
"""objects of Coil20 that are toy cars"""
_RIDGE = 1e-3
_BAND: dict[str, Any] = {"kernel": "rbf", "gamma": "median"}
_SHARES: dict[str, Any] = {"positive_fraction": "labeled"}
METHODS: dict[str, dict[str, Any]] = {
    "tsvm": {**_SHARES, "lambda": _RIDGE},
    "da": {**_SHARES, "lambda": _RIDGE},
    "kernel_da": {**_BAND, **_SHARES, "lambda": _RIDGE},
    "gradient_tsvm": {**_BAND, **_SHARES, "lambda": _RIDGE},
    "cccp_tsvm": {**_SHARES, "C": 10.0, "gamma": "median"},
    "lds": {**_BAND, **_SHARES, "lambda": _RIDGE},
    "laplacian_rls": {**_BAND, "lambda": 1e-6, "lambda_graph": 1.0},
}
_LINEAR = ("svm", SvmOptions.parse({"lambda": 0.5 * _RIDGE}))
SUPERVISED: dict[str, tuple[str, Options]] = {
    "tsvm": _LINEAR,
    "da": _LINEAR,
    "kernel_da": ("kernel_da", KernelAnnealingOptions.parse({**_BAND, "lambda": 0.5 * _RIDGE})),
}
"""the algorithm that minimises half the objective of each of these where all labels are known, and its options"""
_COUNTS = (10, 25, 50, 100, 200)
_TEMPERATURES = (None, 10.0, 1.0, 0.1, 0.01)


def moons() -> list[Draw]:
    """Two half circles, each in the other's mouth, with a label on each."""
    rng, t = np.random.default_rng(0), np.linspace(0, np.pi, _MOONS // 2)
    arcs = [np.column_stack([np.cos(t), np.sin(t)]), np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])]
    X = np.concatenate(arcs) + _NOISE * rng.standard_normal((_MOONS, 2))
    return evenly(X, np.repeat([-1, 1], _MOONS // 2), 1, _STARTS)


def cars() -> list[Draw]:
    """Three toy cars from all sides, two labels each."""
    data = load("coil20")
    chosen = np.isin(data.y, _CARS)
    return evenly(data.X[chosen], data.y[chosen], 2, _STARTS)


def ends(draws: Sequence[Draw]) -> list[list[str]]:
    """A line for each method: its error, in how many starts it is below a tenth, in how many J ends above J of the true
    labels, and the median of their ratio.
    """
    lines = []
    for method, options in METHODS.items():
        found = [trained(Run("", "", method, options, ""), draw) for draw in draws]
        errors = np.array([error for _, error in found])
        line = [f"`{method}`", f"{100 * errors.mean():.1f}", f"{np.sum(errors < 0.1)} of {_STARTS}"]
        if method in SUPERVISED:
            objectives = np.array([training.objective for training, _ in found])
            ratios = objectives / [true_objective(method, draw) for draw in draws]
            line += [f"{np.sum(ratios > 1 + 1e-6)} of {_STARTS}", f"{np.median(ratios):.2f}"]
        lines.append([*line, "", ""][:5])
        print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    return lines


def true_objective(method: str, draw: Draw) -> float:
    """Sum over the two-class problems of the objective with the true labels, at its minimum over w: an SVM with as much
    total weight of the unlabeled rows as of the labeled ones.
    """
    algorithm, options = SUPERVISED[method]
    costs = np.full(len(draw.y), 1.0 / len(draw.unlabeled))
    costs[draw.labeled] = 1.0 / len(draw.labeled)
    classes = np.unique(draw.y)
    problems = [
        Problem.of(draw.rows, np.where(draw.y == label, 1.0, -1.0), costs)
        for label in (classes[1:] if len(classes) == 2 else classes)
    ]
    return sum(2.0 * solve(algorithm, problem, options).objective for problem in problems)


def temperatures() -> list[list[str]]:
    """Error and J of annealing, and of one temperature, on five draws of each number of labels of pcmac."""
    lines, draws = [], {count: drawn_evenly("pcmac", count)[:5] for count in _COUNTS}
    for temperature in _TEMPERATURES:
        line = ["annealed" if temperature is None else f"{temperature:g}"]
        run = Run("", "pcmac", "da", {**_SHARES, "fixed_temperature": temperature}, "")
        for own in draws.values():
            found = [(error, training.objective) for training, error in (trained(run, draw) for draw in own)]
            error, objective = np.mean(found, axis=0)
            line.append(f"{100 * error:.1f}, {objective:.4f}")
        lines.append(line)
        print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    return lines


def main() -> None:
    """Measure both, and put their sections into the page."""
    heads = ["method", "mean error, %", "error below 10 %", "J above that of the true labels", "J by it, median"]
    parts = [
        f"{title}:\n\n{table(heads, ends(make()))}" for title, make in (("Two moons", moons), ("Three cars", cars))
    ]
    text = (
        f"`python -m benchmarks.yardsticks` starts each method {_STARTS} times, each time with other labels: one of "
        "each moon, two of each car. J is the method's objective; the true labels have it with an SVM of all labels. "
        "An end above it is a local minimum, an end below it is where the objective misleads."
    )
    put_section("papers.md", f"## Bent clusters\n\n{text}\n\n" + "\n\n".join(parts))
    text = (
        "Figures 12 and 13 of Sindhwani & Keerthi 2006: `da` on pcmac, annealed and at one temperature T, in units of "
        "λ': mean error in % and mean J of five draws of each number of labels, as many of either class."
    )
    heads = ["T", *(f"{2 * count} labels" for count in _COUNTS)]
    put_section("papers.md", f"## A fixed temperature\n\n{text}\n\n{table(heads, temperatures())}")


if __name__ == "__main__":
    main()
