"""Warnings about a finished training: solves cut short, time that was over, values that do not suit, one class for all
documents.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.value_scale import ValueScale
from core.errors import MessageNames
from core.options.base import Options
from core.problem import Status

NO_UNLABELED = "there are no unlabeled documents: the model is the supervised one"
_NAMED = 10
"""classes that a warning names"""
RANDOM_LABELS = 30
"""labels of documents drawn at random that settle what is a guess"""
_EXPECTED = 3.0
"""documents of other classes from which on one class for all is no chance: were they as frequent, there would be none
once in twenty times"""


def scale_warnings(
    options: Options, statuses: Sequence[Status], scale: ValueScale, names: MessageNames, n_labeled: int
) -> list[str]:
    """Warnings about solves that ended at their limit, or else about values that do not suit the options.

    ``statuses`` are those of all solves.
    """
    short = sum(status is Status.ITERATION_LIMIT for status in statuses)
    remedy = (
        scale.remedy(names) if options.depends_on_scale or (scale.dominated and not options.rescales_features) else None
    )
    if short:
        return [
            f"{short} of {len(statuses)} two-class problems ended at the iteration limit; "
            f"{remedy or options.limit_remedy}"
        ]
    if remedy is not None and options.hardly_learns(scale.length, n_labeled):
        return [f"with these options the model hardly depends on the documents; {remedy}"]
    return [remedy] if remedy is not None and scale.dominated else []


def one_class_warnings(
    given: NDArray[np.integer[Any]],
    labeled: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    fractions: NDArray[np.float64] | None,
    remedy: str,
) -> list[str]:
    """Warnings where all unlabeled documents are ``given`` one class, against expectation.

    ``labeled`` are the classes of the labeled documents. ``fractions``, shape (n_classes,), are those of the unlabeled
    ones where their owner knows them: one class for all is then right if they leave next to nothing for the others.
    ``remedy`` is what else to try, as the end of a sentence.
    """
    if not len(given) or len(classes) < 2 or (given != given[0]).any():
        return []
    counts = np.bincount(labeled, minlength=len(classes))
    shares = counts / counts.sum() if fractions is None else fractions
    if len(given) * (1.0 - float(shares[given[0]])) < _EXPECTED:
        return []
    others = int(counts.sum() - counts[given[0]])
    which = f"of class {str(classes[1 - given[0]])!r}" if len(classes) == 2 else "of other classes"
    found = (
        f"all {len(given):,} unlabeled documents get class {str(classes[given[0]])!r}, though {others:,} of "
        f"{int(counts.sum()):,} labels are {which}"
    )
    return [f"{found}: the model tells no classes apart; label more documents {which}, or {remedy}"]


def fraction_warnings(report: Mapping[str, Any] | None) -> list[str]:
    """Which classes have fractions that hang on a guess, by the report of a training."""
    guessed = (report or {}).get("fractions", {}).get("guessed", [])
    if not guessed:
        return []
    named = ", ".join(map(repr, guessed[:_NAMED])) + (", …" if len(guessed) > _NAMED else "")
    return [
        f"how frequent these classes are is a guess: {named}; some {RANDOM_LABELS} labels of documents drawn at random "
        "would settle it, or class_fractions, where they are known"
    ]


def time_warnings(report: Mapping[str, Any] | None) -> list[str]:
    """Warnings about a budget of seconds that did not suffice, by the report of a training."""
    time = (report or {}).get("time")
    if time is None or (time["all_methods_tried"] and time["solved"]):
        return []
    missed = "the model was solved to its tolerance" if time["all_methods_tried"] else "all methods were tried"
    return [
        f"{time['seconds']:g} seconds were over before {missed}: with more seconds, or without a bound, the "
        "model may err less"
    ]


def tuning_warnings(report: Mapping[str, Any] | None) -> list[str]:
    """Warnings about values of C and gamma that took too many steps to be compared, by the report of a training."""
    tried = [trial for trial in (report or {}).get("tried", []) if "right" in trial]
    missed = sum(len(trial["C"]) - len(trial["right"]) for trial in tried)
    if not missed:
        return []
    return [
        f"{missed} settings of C and gamma took too many steps to be compared, and were left out; bring the features "
        "to one scale, or give C and gamma"
    ]
