"""Trainings on labels that were made of something else: what they say of the documents that had none."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.problem import Status
from core.progress import Span
from core.task import Run, Training, TrainingContext, TrainingTask

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
        """The training on the task, with answers about all documents without a given label; raises as core.train.train
        does.
        """
        return self.completed(train(self.task, context))

    def completed(self, trained: Training) -> Training:
        """The training with scores and probabilities of all documents without a given label, in order."""
        model, unlabeled = trained.model, np.flatnonzero(~self.certain)
        scores = np.full((len(unlabeled), model.n_columns), np.nan)
        scored = np.isin(unlabeled, trained.unlabeled)
        scores[scored] = trained.scores[np.isin(trained.unlabeled, unlabeled)]
        if trained.status is not Status.CANCELLED:
            scores[~scored] = model.scores(self.task.rows.taken(unlabeled[~scored]))
        return replace(trained, unlabeled=unlabeled, scores=scores, probabilities=model.probabilities(scores))

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
    return derived.answered(
        replace(
            trained,
            warnings=[*derived.warnings, *trained.warnings],
            passes=run.counter.passes + trained.passes,
            report={**(trained.report or {}), **derived.report},
        )
    )
