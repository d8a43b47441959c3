"""The bounds of the panel, and whether they are reached."""

from collections.abc import Callable

import numpy as np

from benchmarks.base import Figure
from benchmarks.panel.analysis import (
    Gap,
    Runs,
    gaps_by_run,
    gaps_by_set_and_draw,
    gaps_to_even,
    gaps_to_peers,
    names_of,
    of,
    over_sets,
    round_means,
    worst,
)
from benchmarks.panel.runs import AUTO, TSVM, Run
from benchmarks.panel.tasks import STRATEGIES

PLAIN = ("even", "random")
SINGLE, STEP = 0.05, 0.02
"""errors by which a single run, and a single round, may not be worse"""
NO_KNOWLEDGE = 0.05
"""Cohen's kappa up to which a model is no better than chance"""


def bounds(runs: Runs) -> list[Figure]:
    """Every bound for which there are runs."""
    groups: list[Callable[[Runs], list[Figure]]] = [
        _protection,
        _rounds,
        _means,
        _peers,
        _fractions,
        _calibration,
        _ignorance,
        _time,
    ]
    return [figure for group in groups for figure in group(runs)]


def _protection(runs: Runs) -> list[Figure]:
    each, single, even = gaps_by_set_and_draw(runs), gaps_by_run(runs), gaps_to_even(runs)
    beyond = [found for found in each if found.value > 0.01]
    return [
        Figure(
            f"set and draw, error beyond the better of two; worst: {worst(each).where}; more than .01: "
            f"{len(beyond)} of {len(each)}",
            worst(each).value,
            0.01,
            "",
        ),
        Figure(
            f"share of single runs beyond that by more than .05; worst: {_said(worst(single))}",
            float(np.mean([found.value > SINGLE for found in single])),
            0.01,
            "",
        ),
        Figure(
            f"draw, mean error beyond that of as many even labels; worst: {worst(even).where}",
            worst(even).value,
            0.02,
            "",
        ),
    ]


def _rounds(runs: Runs) -> list[Figure]:
    by_strategy: dict[str, list[Run]] = {strategy: of(runs, draws=[f"suggest-{strategy}"]) for strategy in STRATEGIES}
    suggested = {strategy: own for strategy, own in by_strategy.items() if own and strategy != "random"}
    if not suggested:
        return []
    steps = [
        Gap(float(step), f"{strategy}, round {place}")
        for strategy, own in suggested.items()
        for place, step in enumerate(np.diff(round_means(own)), 1)
    ]
    single = [
        Gap(float(step), f"{run.task.name}, {run.task.draw}, seed {run.task.seed}, round {place}")
        for own in suggested.values()
        for run in own
        for place, step in enumerate(np.diff(run.rounds), 1)
    ]
    figures = [
        Figure(f"`suggest`: step of the mean error; worst: {worst(steps).where}", worst(steps).value, 0.0, ""),
        Figure(
            f"`suggest`: share of single steps up by more than .02; worst: {_said(worst(single))}",
            float(np.mean([found.value > STEP for found in single])),
            0.03,
            "",
        ),
    ]
    beside = worst(_beside_random(suggested, by_strategy["random"]))
    return (
        figures
        if not beside.where
        else [
            *figures,
            Figure(
                f"`suggest`: mean error beyond that of as many random labels; worst: {beside.where}",
                beside.value,
                0.005,
                "",
            ),
        ]
    )


def _beside_random(suggested: dict[str, list[Run]], random: list[Run]) -> list[Gap]:
    """For each strategy and round the mean error beyond the error of random labels, over the sets and seeds that have
    both.
    """
    found = []
    for strategy, own in suggested.items():
        pairs = {(run.task.name, run.task.seed) for run in own} & {(run.task.name, run.task.seed) for run in random}
        if pairs:
            one, other = (
                [run for run in several if (run.task.name, run.task.seed) in pairs] for several in (own, random)
            )
            differences = round_means(one) - round_means(other)
            found += [
                Gap(float(value), f"{strategy}, round {place}") for place, value in enumerate(differences) if place
            ]
    return found


def _means(runs: Runs) -> list[Figure]:
    plain = of(runs, draws=PLAIN)
    if not plain:
        return []
    auto, tsvm = (
        over_sets(plain, lambda run: run.scores[AUTO].error),
        over_sets(plain, lambda run: run.scores[TSVM].error),
    )
    return [
        Figure(
            f"mean error of even and random labels ({auto:.4f}) beyond TSVM told the true fractions ({tsvm:.4f})",
            auto - tsvm,
            0.0,
            "",
        )
    ]


def _peers(runs: Runs) -> list[Figure]:
    gaps = gaps_to_peers(runs)
    better = [found for found in gaps if found.value > 0.01]
    listed = "; ".join(_said(found) for found in sorted(better, reverse=True)) or "none"
    return (
        [Figure(f"sets of {len(gaps)} where a peer is better by more than .01 ({listed})", len(better), 0, "")]
        if gaps
        else []
    )


def _fractions(runs: Runs) -> list[Figure]:
    plain = of(runs, draws=PLAIN)
    figures = (
        [
            Figure(
                "total variation of the class fractions: even and random labels", over_sets(plain, _variation), 0.05, ""
            )
        ]
        if plain
        else []
    )
    return [
        *figures,
        Figure("total variation of the class fractions: all draws", over_sets(runs, _variation), 0.08, ""),
    ]


def _variation(run: Run) -> float | None:
    return run.scores[AUTO].variation


def _calibration(runs: Runs) -> list[Figure]:
    by_set = worst(Gap(over_sets(of(runs, name), _calibration_error), name) for name in names_of(runs))
    return [
        Figure("expected calibration error, mean", over_sets(runs, _calibration_error), 0.06, ""),
        Figure(f"expected calibration error, worst set ({by_set.where})", by_set.value, 0.15, ""),
    ]


def _calibration_error(run: Run) -> float | None:
    return run.scores[AUTO].calibration


def _ignorance(runs: Runs) -> list[Figure]:
    ignorant = [run for run in runs if run.scores[AUTO].kappa <= NO_KNOWLEDGE]
    silent = [run for run in ignorant if run.scores[AUTO].confidence != "none"]
    named = f", first: {silent[0].task.name}, {silent[0].task.draw}" if silent else ""
    return [
        Figure(f"runs no better than chance that do not say so (of {len(ignorant)} such{named})", len(silent), 0, "")
    ]


def _time(runs: Runs) -> list[Figure]:
    times = [run.scores[AUTO].seconds / run.scores[TSVM].seconds for run in runs]
    return [Figure("time in units of one TSVM told the true fractions, median", float(np.median(times)), 4, "")]


def _said(found: Gap) -> str:
    return f"{found.where}, {found.value:+.3f}"
