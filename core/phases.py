"""Phases of a training in words, for those who watch a job. The trace keeps the paths from which they are made."""

import re
from re import Match

from core.progress import TracePoint
from core.registry import ALGORITHMS
from core.validation.folds import N_FOLDS

_SOLVERS = (*ALGORITHMS, "graph", "mixture")
_PATH = re.compile(
    rf"""(fold=(?P<calibration>\d+)/)?
    (class=(?P<label>.*?)/)?
    (supervised/|fractions/fold=(?P<fractions>\d+)/|svm/lambda=(?P<ridge>[^/]+)/fold=(?P<choice>\d+)/|mixture/fold=(?P<mixture>\d+)/)?
    (?P<solver>{"|".join(_SOLVERS)})
    (?P<details>(/(svm|subset|feasible|\w+=\d+))*)""",
    re.DOTALL | re.VERBOSE,
)
_WHOLE = {"": "starting", "terms": "finding the terms of the texts", "auto": "preparing the documents"}
_DETAILS = {"svm": "supervised solution", "subset": "on a subset", "feasible": "finding a feasible point"}


def phase_in_words(point: TracePoint) -> str:
    """The phase of a point, such as ``class sport: tsvm, stage 4 of 18``; the path itself if it is of no known form."""
    if point.phase in _WHOLE:
        return _WHOLE[point.phase]
    path = _PATH.fullmatch(point.phase)
    if path is None:
        return point.phase
    label = "" if path["label"] is None else f"class {path['label']}: "
    details = [_detail(detail, point.stages) for detail in path["details"].split("/")[1:]]
    return label + _purpose(path) + ", ".join([path["solver"], *details])


def _purpose(path: Match[str]) -> str:
    """What the solver is run for, if not for the model itself."""
    if path["calibration"] is not None:
        return f"calibration, {_fold(path['calibration'])}: "
    if path["fractions"] is not None:
        return f"estimate of the class fractions, {_fold(path['fractions'])}: "
    if path["choice"] is not None:
        return f"choice of lambda, {path['ridge']}, {_fold(path['choice'])}: "
    return f"labels left out, {_fold(path['mixture'])}: " if path["mixture"] is not None else ""


def _fold(number: str) -> str:
    return f"fold {int(number) + 1} of {N_FOLDS}"


def _detail(detail: str, stages: int) -> str:
    name, _, number = detail.partition("=")
    if not number:
        return _DETAILS[name]
    if name == "planes":
        return f"{number} planes"
    return f"{name} {int(number) + 1}" + (f" of {stages}" if name == "stage" and stages else "")
