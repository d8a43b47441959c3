"""Chooses among candidates: which of them have a part in the model, with what weights, and the class fractions that they agree on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import log_of
from core.selection.candidates import Candidate
from core.selection.stack import SUPERVISED_ODDS, pooled_fractions, stack_weights


class Choice(NamedTuple):
    """What is chosen among candidates."""

    places: list[tuple[int, float]]
    """positions of the candidates that have a part in the model, with their weights, the largest first"""
    fractions: NDArray[np.float64] | None
    """shape (n_classes,): class fractions of the unlabeled documents; None if there are none of these"""


def choose(candidates: Sequence[Candidate], class_indices: NDArray[np.integer[Any]]) -> Choice:
    """Choose by labels left out; ``class_indices`` are the classes of the labeled rows.

    Candidates whose scores are linear are added; another is chosen alone, where it predicts best of all.
    One that learns from labels alone has small odds to be alone. Of equals, as where no label can be left out, those that learn from unlabeled
    documents are preferred, then the first.
    """
    best = max(range(len(candidates)), key=lambda place: (*_merit(candidates[place]), -place))
    # fractions by what is not linear are further off on most dense documents: only where it predicts best are they asked for
    fractions = pooled_fractions([each for place, each in enumerate(candidates) if each.linear or place == best])
    if not candidates[best].linear:
        return Choice([(best, 1.0)], fractions)
    linear = [place for place, candidate in enumerate(candidates) if candidate.linear]
    weights = stack_weights([candidates[place] for place in linear], class_indices)
    weighted = [(place, weight) for place, weight in zip(linear, weights, strict=True) if weight]
    return Choice(sorted(weighted, key=lambda each: -each[1]), fractions)


def _merit(candidate: Candidate) -> tuple[float, bool]:
    odds = 1.0 if candidate.linear or candidate.uses_unlabeled else SUPERVISED_ODDS
    return candidate.judgement.log_likelihood + log_of(odds), candidate.uses_unlabeled
