"""Phases of a training in words, for those who watch a job. Traces keep their paths."""

from core.progress import CALIBRATION, TOGETHER, Phase, TracePoint
from core.selection.registry import METHODS

_SOLVERS = {
    "": "starting",
    "vectors": "making vectors of the texts",
    "terms": "finding the terms of the texts",
    "auto": "preparing the documents",
    "regression": "a model of the scores",
    "clusters": "finding clusters",
    "votes": "weighing the voters",
    "directions": "what documents have in common",
    "ridge": "ridge regression",
    "share": "estimating the share of the class",
}
"""words of a solver that its own name does not say"""
PURPOSES = {
    CALIBRATION: ("calibration", ", fold {}"),
    "supervised": ("class fractions, prediction", ""),
    "svm/lambda": ("lambda {:g}", ", fold {}"),
    "tuning": ("choice of C and gamma", ", fold {}"),
    "candidate": ("comparison of methods", ", fold {}"),
    "addend": ("addend {:g} of the model", ""),
} | {purpose: words for method in METHODS.values() for purpose, words in method.purposes.items()}
"""words of a purpose, with its value, and of a fold"""
_STEPS = {"svm": "supervised solution", "subset": "on a subset", "feasible": "finding a feasible point"}


def phase_in_words(point: TracePoint) -> str:
    """The phase of a point, such as ``class sport: tsvm, stage 4 of 18``."""
    phase = point.phase
    part = "all parts: " if phase.part == TOGETHER else f"{phase.part} alone: "
    label = "" if phase.label is None else f"class {phase.label}: "
    steps = [_step(name, number, point.stages) for name, number in phase.steps]
    solvers = _SOLVERS | {method.key: method.title for method in METHODS.values()}
    solver = ", ".join([solvers.get(phase.solver, phase.solver), *steps])
    return (part if phase.part else "") + label + _purpose(phase) + solver


def _purpose(phase: Phase) -> str:
    if not phase.purpose:
        return ""
    words, fold = PURPOSES[phase.purpose]
    return words.format(phase.value) + ("" if phase.fold is None else fold.format(phase.fold + 1)) + ": "


def _step(name: str, number: int | None, stages: int) -> str:
    if number is None:
        return _STEPS[name]
    if name == "planes":
        return f"{number} planes"
    return f"{name} {number + 1}" + (f" of {stages}" if name == "stage" and stages else "")
