"""The panel as a page."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.base import Figure, machine, table
from benchmarks.panel.methods import Score
from benchmarks.panel.sets import DRAWS, LABELS

Found = Mapping[tuple[str, str, int], Mapping[str, Score]]

_TRUE_FRACTIONS, _PEERS = "TSVM, true fractions", ("SelfTraining", "LabelSpreading")
_METHODS = ("SVM", _TRUE_FRACTIONS, "auto", *_PEERS)
_NOTES = Path(__file__).with_name("notes.md")


def page(found: Found, seeds: int) -> str:
    """All of ``docs/few-labels.md``."""
    names = list(dict.fromkeys(name for name, _, _ in found))
    head = (
        "# Few labels in the wild\n\n"
        f"Made by `python -m benchmarks.panel` on:\n{machine()}.\n"
        f"{len(names)} sets, both kinds of labels, {seeds} seeds at most, {len(found)} runs; the last column says how many a line has.\n"
    )
    return "\n".join([head, _bounds(found, names), _sets(found, names), _NOTES.read_text()])


def _bounds(found: Found, names: list[str]) -> str:
    """The bounds of the panel, and whether they are reached."""
    tsvm, auto = _over_sets(found, lambda each: each[_TRUE_FRACTIONS].error), _over_sets(found, lambda each: each["auto"].error)
    worst = max(names, key=lambda name: _gap(found, name, "SVM"))
    rivals = [name for name in names if max(_gap(found, name, peer) for peer in _PEERS) > 0.01]
    times = [each["auto"].seconds / each[_TRUE_FRACTIONS].seconds for each in found.values()]
    figures = [
        Figure(f"mean error (TSVM with true fractions: {tsvm:.4f})", auto, tsvm + 0.02, ""),
        Figure(f"against the supervised SVM, worst set ({worst})", _gap(found, worst, "SVM"), 0.01, ""),
        Figure(f"sets where a peer is better by more than .01 ({', '.join(rivals) or 'none'})", len(rivals), 0, ""),
        Figure("total variation of the estimated fractions, mean", _over_sets(found, lambda each: each["auto"].variation), 0.05, ""),
        Figure("expected calibration error, mean", _over_sets(found, lambda each: each["auto"].calibration), 0.08, ""),
        Figure("time in units of one TSVM with true fractions, median over the tasks", float(np.median(times)), 12, ""),
    ]
    return "## What was to be reached\n\n" + table(
        ["over the panel, `auto`, no option given", "", "to reach", ""], [each.row()[:4] for each in figures]
    )


def _sets(found: Found, names: list[str]) -> str:
    """A line a set and kind of labels."""
    lines = []
    for name in names:
        for draw in DRAWS:
            runs = [each for (one, kind, _), each in found.items() if (one, kind) == (name, draw)]
            if not runs:
                continue
            errors = [f"{np.mean([run[method].error for run in runs]):.3f}" for method in _METHODS]
            autos = [run["auto"] for run in runs]
            measures = [f"{_average(each.variation for each in autos):.3f}", f"{_average(each.calibration for each in autos):.3f}"]
            kept = f"{sum(each.chosen == 'svm' for each in autos)} of {len(autos)}"
            lines.append([f"{name} ({LABELS[name]})", draw, *errors, *measures, kept])
    heads = ["set (labels a class)", "labels", *_METHODS, "TV", "ECE", "supervised kept"]
    note = (
        "Errors are on the unlabeled documents, mean over the seeds.\n\n"
        "- SVM: λ by cross-validation. TSVM: given the true fractions, λ = .001, λ' = 1.\n"
        "- TV: total variation between the fractions that `auto` found and the true ones.\n"
        "- ECE: expected calibration error of its probabilities, 15 bins.\n"
        "- Last column: how often `auto` kept the supervised model.\n"
    )
    return f"## Set by set\n\n{note}\n{table(heads, lines)}"


def _over_sets(found: Found, value: Callable[[Mapping[str, Score]], float | None]) -> float:
    """The mean of the sets' means, so that every set counts the same however many runs it has."""
    names = dict.fromkeys(name for name, _, _ in found)
    return float(np.mean([_average(value(each) for (one, _, _), each in found.items() if one == name) for name in names]))


def _gap(found: Found, name: str, method: str) -> float:
    """By how much auto errs more than a method on a set."""
    return float(np.mean([each["auto"].error - each[method].error for (one, _, _), each in found.items() if one == name]))


def _average(values: Iterable[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))
