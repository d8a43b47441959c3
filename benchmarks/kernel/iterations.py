"""Objective and error after each convex step of the transductive SVM: Figure 1.8."""

from pathlib import Path

from benchmarks.base import table
from benchmarks.kernel.chosen import Chosen
from benchmarks.kernel.fits import Fit, fit_draw
from benchmarks.kernel.plots import Panel, draw
from benchmarks.kernel.sets import DRAWS, Draw


def figure_18(chosen: Chosen, target: Path) -> str:
    """One draw of g50c and of pcmac, stopped after one step, after two and so on."""
    panels, lines = [], []
    for name in ("g50c", "pcmac"):
        fits = list(_by_step(DRAWS[name]()[0], chosen["table 1.3"][name]["s = 0"]))
        steps = list(range(1, len(fits) + 1))
        panels.append(Panel(f"{name}: objective", {"J": (steps, [fit.training.objective for fit in fits])}, "convex steps", "objective (1.12)"))
        panels.append(Panel(f"{name}: error", {"unlabeled": (steps, [100 * fit.error for fit in fits])}, "convex steps", "error, %"))
        lines += [[name, step, f"{fit.training.objective:.4f}", f"{100 * fit.error:.2f} %"] for step, fit in zip(steps, fits, strict=True)]
    draw(panels, target)
    return f"![Figure 1.8]({target.name})\n\n{table(['set', 'convex steps', 'objective', 'error'], lines)}"


def _by_step(given: Draw, options: dict[str, float]) -> list[Fit]:
    """One fit a step until more steps change nothing."""
    fits: list[Fit] = []
    while not fits or fits[-1].training.status == "iteration_limit":
        fits.append(fit_draw(given, "cccp_tsvm", {**options, "max_iterations": len(fits) + 1}))
    return fits
