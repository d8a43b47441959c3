"""Warnings about a finished training: solves cut short, values that do not suit, one class for all documents.

Whoever makes a part of the report has its warnings.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.value_scale import ValueScale
from core.errors import MessageNames
from core.options.base import Options
from core.problem import Status

NO_UNLABELED = "there are no unlabeled documents: the model is the supervised one"
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
