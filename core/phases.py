"""Phases of a training in words, for those who watch a job. The trace keeps the paths from which they are made."""

import re
from re import Match

from core.progress import TracePoint
from core.registry import ALGORITHMS

_NAMES = {"graph": "label spreading", "mixture": "naive Bayes", "ridge": "kernel ridge regression"}
"""candidates of auto that are no algorithms by themselves"""
_PATH = re.compile(
    rf"""(part=(?P<part>[^/]*)/)?
    (fold=(?P<calibration>\d+)/)?
    (class=(?P<label>.*?)/)?
    ((?P<predicting>supervised)/(fold=\d+/)?|fractions/fold=(?P<fractions>\d+)/|svm/lambda=(?P<ridge>[^/]+)/fold=(?P<choice>\d+)/|mixture/(weight=(?P<weight>[^/]+)/fold=(?P<mixture>\d+)|all)/|
    addend=(?P<addend>\d+)/|(?P<candidate>candidate)/|(?P<tuning>tuning)/(fold=(?P<tuned>\d+)/)?)?
    (?P<solver>{"|".join([*ALGORITHMS, *_NAMES])})
    (?P<details>(/(svm|subset|feasible|\w+=\d+))*)""",
    re.DOTALL | re.VERBOSE,
)
_WHOLE = {"": "starting", "vectors": "making vectors of the texts", "terms": "finding the terms of the texts", "auto": "preparing the documents"}
_DETAILS = {"svm": "supervised solution", "subset": "on a subset", "feasible": "finding a feasible point"}


def phase_in_words(point: TracePoint) -> str:
    """The phase of a point, such as ``class sport: tsvm, stage 4 of 18``; the path itself if it is of no known form."""
    if point.phase in _WHOLE:
        return _WHOLE[point.phase]
    path = _PATH.fullmatch(point.phase)
    if path is None:
        return point.phase
    label = "" if path["label"] is None else f"class {path['label']}: "
    if path["part"] is not None:
        label = ("all parts: " if path["part"] == "together" else f"{path['part']} alone: ") + label
    details = [_detail(detail, point.stages) for detail in path["details"].split("/")[1:]]
    return label + _purpose(path) + ", ".join([_NAMES.get(path["solver"], path["solver"]), *details])


def _purpose(path: Match[str]) -> str:
    """What the solver is run for, if not for the model itself."""
    if path["calibration"] is not None:
        return f"calibration, fold {int(path['calibration']) + 1}: "
    if path["predicting"] is not None:
        return "class fractions, prediction: "
    if path["fractions"] is not None:
        return f"class fractions, fit {int(path['fractions']) + 1}: "
    if path["choice"] is not None:
        return f"lambda {path['ridge']}, fold {int(path['choice']) + 1}: "
    if path["tuning"] is not None:
        return "choice of C and gamma: " if path["tuned"] is None else f"choice of C and gamma, fold {int(path['tuned']) + 1}: "
    if path["candidate"] is not None:
        return "comparison of methods: "
    if path["addend"] is not None:
        return f"addend {path['addend']} of the model: "
    return "" if path["mixture"] is None else f"unlabeled documents with weight {path['weight']}, fold {int(path['mixture']) + 1}: "


def _detail(detail: str, stages: int) -> str:
    name, _, number = detail.partition("=")
    if not number:
        return _DETAILS[name]
    if name == "planes":
        return f"{number} planes"
    return f"{name} {int(number) + 1}" + (f" of {stages}" if name == "stage" and stages else "")
