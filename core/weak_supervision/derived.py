"""Trainings on labels that were made of something else: what they say of the documents that had none."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.problem import Status
from core.progress import Span
from core.training import Run, Training, TrainingContext, TrainingTask

Train = Callable[[TrainingTask, TrainingContext], Training]

_DERIVING, _TRAINING = Span(0.0, 0.3), Span(0.3, 1.0)
"""spans of the work in which labels are made, and in which they are learned from"""


@dataclass(frozen=True)
class Derived:
    """A task with labels that were made."""

    task: TrainingTask
    certain: NDArray[np.bool_]
    """shape (n_rows,): documents whose labels were given"""
    report: dict[str, Any]
    warnings: list[str]

    def trained(self, train: Train, context: TrainingContext) -> Training:
        """The training on the task; raises as core.train.train does."""
        return train(self.task, context)

    def probabilities(
        self, trained: Training, scores: NDArray[np.float64], positions: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """Probabilities of the documents at some positions with these scores, shape (n, n_classes); None where the
        model has none.
        """
        return trained.model.probabilities(scores)

    def answered(self, trained: Training) -> Training:
        """What else becomes of a training on the task."""
        return trained


def learn(derive: Callable[[Run], Derived], train: Train, context: TrainingContext) -> Training:
    """Train on labels that are made first. All documents without a label that was given are answered, in order. Raises
    Stopped while labels are made, and as core.train.train.
    """
    began = time.monotonic() if context.began is None else context.began
    run = Run.of(replace(context, span=context.span.between(*_DERIVING), began=began))
    derived = derive(run)
    trained = derived.trained(train, replace(context, span=context.span.between(*_TRAINING), began=began))
    model, unlabeled = trained.model, np.flatnonzero(~derived.certain)
    scores = np.full((len(unlabeled), model.n_columns), np.nan)
    scored = np.isin(unlabeled, trained.unlabeled)
    scores[scored] = trained.scores
    if trained.status is not Status.CANCELLED:
        scores[~scored] = model.scores(derived.task.rows.taken(unlabeled[~scored]))
    return derived.answered(
        replace(
            trained,
            unlabeled=unlabeled,
            scores=scores,
            probabilities=derived.probabilities(trained, scores, unlabeled),
            warnings=[*derived.warnings, *trained.warnings],
            passes=run.counter.passes + trained.passes,
            report={**(trained.report or {}), **derived.report},
        )
    )
