"""Means and gaps over the runs of the panel."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.panel.runs import AS_MANY, AUTO, SURPLUS, SVM, Run
from benchmarks.panel.tasks import DRAWS

Runs = Sequence[Run]


class Gap(NamedTuple):
    """By how much ``auto`` errs more than something, and where."""

    value: float
    where: str = ""


NO_GAP = Gap(-np.inf)


def mean(values: Iterable[float | None]) -> float:
    """The mean of the values that there are, NaN if there are none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else np.nan


def error(method: str) -> Callable[[Run], float]:
    """The error of a method in a run."""
    return lambda run: run.scores[method].error


def names_of(runs: Runs) -> list[str]:
    """The sets, in the order of their first runs."""
    return list(dict.fromkeys(run.task.name for run in runs))


def draws_of(runs: Runs) -> list[str]:
    """The draws, in the order of the panel."""
    present = {run.task.draw for run in runs}
    return [draw for draw in DRAWS if draw in present]


def of(runs: Runs, name: str | None = None, draws: Iterable[str] | None = None) -> list[Run]:
    """The runs of a set, and of some draws."""
    chosen = None if draws is None else {*draws}
    return [run for run in runs if name in (None, run.task.name) and (chosen is None or run.task.draw in chosen)]


def over_sets(runs: Runs, value: Callable[[Run], float | None]) -> float:
    """The mean of the sets' means, so that every set counts the same however many runs it has."""
    return mean(mean(value(run) for run in of(runs, name)) for name in names_of(runs))


def better_of_two(runs: Runs) -> float:
    """The lower of two mean errors: the tuned supervised SVM, and ``auto`` on labels made even."""
    return min(mean(map(error(SVM), runs)), mean(map(error(SURPLUS), runs)))


def gap(runs: Runs) -> float:
    """The mean error of ``auto`` beyond the better of two."""
    return mean(map(error(AUTO), runs)) - better_of_two(runs)


def worst(gaps: Iterable[Gap]) -> Gap:
    """The largest of gaps."""
    return max(gaps, default=NO_GAP)


def gaps_by_set_and_draw(runs: Runs) -> list[Gap]:
    """The gap of each set and draw, mean over the seeds."""
    pairs = [(name, draw, of(runs, name, [draw])) for name in names_of(runs) for draw in draws_of(runs)]
    return [Gap(gap(own), f"{name}, {draw}") for name, draw, own in pairs if own]


def gaps_by_run(runs: Runs) -> list[Gap]:
    """The gap of each run."""
    return [Gap(gap([run]), f"{run.task.name}, {run.task.draw}, seed {run.task.seed}") for run in runs]


def gaps_to_even(runs: Runs) -> list[Gap]:
    """For each draw its mean error over the sets beyond the error of even labels, as many of them."""
    return [
        Gap(over_sets(of(runs, draws=[draw]), lambda run: run.scores[AUTO].error - run.scores[AS_MANY].error), draw)
        for draw in draws_of(runs)
    ]


def gaps_to_peers(runs: Runs) -> list[Gap]:
    """For each set its mean error beyond its best peer's."""
    found = []
    for name in names_of(runs):
        own = [run for run in of(runs, name) if peers_of(run)]
        if own:
            best = min(peers_of(own[0]), key=lambda peer: mean(map(error(peer), own)))
            found.append(Gap(mean(map(error(AUTO), own)) - mean(map(error(best), own)), f"{name}, {best}"))
    return found


def peers_of(run: Run) -> list[str]:
    """The peers that were measured in a run."""
    from benchmarks.panel.peers import PEERS

    return [peer for peer in PEERS if peer in run.scores]


def round_means(runs: Runs) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The mean error over sets before the first round and after each, shape (n_rounds + 1,)."""
    return np.array([over_sets(runs, partial(_after_round, place)) for place in range(len(runs[0].rounds))])


def _after_round(place: int, run: Run) -> float:
    return run.rounds[place]
