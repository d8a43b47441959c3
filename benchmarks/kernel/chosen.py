"""The hyper-parameters that the figures are made with, and how they were chosen: ``python -m benchmarks.kernel.chosen`` chooses them again.

Few labels, as in the paper: the least mean error on the unlabeled documents, whose classes the paper uses for it too; over ten draws, of coil20 the
first three. Table 1.1: a third of the training rows of one split validates (of USPS+N, where few rows err, three times another third); of the
settings within ``SLACK`` of the least error there the one of fewest support vectors, for the hinge loss and for the ramp loss alike. What was chosen
is kept in ``chosen.json``, so that the figures are made again without the search.
"""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.base import rows_of
from benchmarks.kernel.fits import Fit, fit_draw, fit_split, median_gamma
from benchmarks.kernel.sets import DRAWS, SPLITS, UNIVERSVM_SETS, VALIDATION, official_draws

_FILE = Path(__file__).parent / "chosen.json"
Chosen = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""table, set, method, options"""
Settings = list[dict[str, Any]]
SLACK = 0.001
DRAWS_TO_CHOOSE = {"g50c": 10, "pcmac": 10, "coil20": 3}
C_OF_DRAWS = {"g50c": (1.0, 3.0, 10.0, 30.0, 100.0), "pcmac": (1.0, 3.0, 10.0, 30.0, 100.0), "coil20": (1.0, 10.0, 100.0)}
C_OF_SPLITS = (1.0, 10.0)
GAMMAS_OF_DRAWS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""in units of 1 / (2 · median distance ²)"""
FEWER_GAMMAS = (0.25, 0.5, 1.0, 2.0)
GAMMAS_OF_SPLITS = {"Waveform": FEWER_GAMMAS, "Banana": FEWER_GAMMAS, "USPS+N": (1.0, 2.0, 4.0), "Adult": FEWER_GAMMAS}
C_U = (0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 5.0, 10.0)
S_OF_DRAWS = (-0.1, -0.2, -0.3, -0.5)
S_OF_SPLITS = (0.0, -0.2, -0.5, -1.0)


def chosen() -> Chosen:
    """As they are kept."""
    kept: Chosen = json.loads(_FILE.read_text())
    return kept


def choose_draws(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The methods of Table 1.3 with their settings of least error on one set."""
    draws = DRAWS[name]()[: DRAWS_TO_CHOOSE[name]]
    unit = median_gamma(draws[0].rows)
    grid: Settings = [{"C": C, "gamma": round(unit * factor, 8)} for C, factor in product(C_OF_DRAWS[name], GAMMAS_OF_DRAWS)]

    def error(algorithm: str, options: dict[str, Any]) -> float:
        return float(np.mean([fit_draw(draw, algorithm, options).error for draw in draws]))

    yield "svm", _least(grid, lambda options: error("kernel_svm", options))
    peaked = _least([{**options, "s": 0.0} for options in grid], lambda options: error("cccp_tsvm", options))
    yield "s = 0", peaked
    near = [{**peaked, "s": s, "gamma": peaked["gamma"] * factor} for s, factor in product(S_OF_DRAWS, (0.5, 1.0, 2.0))]
    yield "s chosen", _least([peaked, *near], lambda options: error("cccp_tsvm", options))


def choose_universvm(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """C* by the errors of splits 0 to 2 with 100 labels; the rest as UniverSVM had it."""
    draws = official_draws(name, "labeled100", 3)
    for s in (0.0, -0.2):
        grid = [{"C": 10.0, "gamma": "median", "s": s, "C_u": C_u} for C_u in C_U]
        yield (
            f"s = {s:g}",
            _least(grid, lambda options: float(np.mean([fit_draw(draw, "cccp_tsvm", options, true_fraction=True).error for draw in draws]))),
        )


def _least(settings: Settings, error: Callable[[dict[str, Any]], float]) -> dict[str, Any]:
    errors = [_told(options, error(options)) for options in settings]
    return settings[int(np.argmin(errors))]


def choose_splits(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Hinge and ramp loss with their settings on one set of Table 1.1."""
    splits = VALIDATION[name]()
    unit = median_gamma(rows_of(splits[0].X))
    grid: Settings = [{"C": C, "gamma": round(unit * factor, 8)} for C, factor in product(C_OF_SPLITS, GAMMAS_OF_SPLITS[name])]
    yield "hinge", _sparsest(grid, lambda options: [fit_split(split, "kernel_svm", options) for split in splits])
    ramps = [{**options, "s": s} for options, s in product(grid, S_OF_SPLITS)]
    yield "ramp", _sparsest(ramps, lambda options: [fit_split(split, "ramp_svm", options) for split in splits])


def _sparsest(settings: Settings, fit: Callable[[dict[str, Any]], list[Fit]]) -> dict[str, Any]:
    """The setting of fewest support vectors among those of nearly the least mean error."""
    found = []
    for options in settings:
        fits = fit(options)
        found.append((_told(options, float(np.mean([trained.error for trained in fits]))), sum(trained.n_support for trained in fits)))
    least = min(error for error, _ in found)
    good = [(n_support, position) for position, (error, n_support) in enumerate(found) if error <= least + SLACK]
    return settings[min(good)[1]]


def _told(options: dict[str, Any], error: float) -> float:
    print(options, f"{error:.4f}", file=sys.stderr, flush=True)
    return error


def main(names: list[str]) -> None:
    """Choose for the named sets, or for all of them, and keep what was chosen."""
    kept = chosen() if _FILE.exists() else {}
    for title, sets, choose in (
        ("universvm", UNIVERSVM_SETS, choose_universvm),
        ("table 1.3", DRAWS, choose_draws),
        ("table 1.1", SPLITS, choose_splits),
    ):
        for name in sets:
            if not names or name in names:
                kept.setdefault(title, {})[name] = dict(choose(name))
                _FILE.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
