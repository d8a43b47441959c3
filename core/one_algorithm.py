"""Trains by one algorithm: class fractions, options that the data choose, one-vs-rest, cross-validation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import Compact
from core.documents.rows import SparseRows
from core.engine.runner import Steps, Vector
from core.engine.solver import load
from core.models.warm_start import Points, starting_points
from core.one_vs_rest import phases_of, positives_of
from core.options.kernel import KernelChoice
from core.problem.problem import Problem
from core.problem.result import Result, unlabeled_scores
from core.progress import CALIBRATION, WHOLE, Phase, Span
from core.selection.class_fractions import by_class
from core.selection.estimation import estimate_fractions
from core.selection.subsets import with_frequent_features
from core.training_context import Run
from core.training_task import CheckedTask
from core.validation.calibration import fit_calibration
from core.validation.confidence import Validated
from core.validation.cross_validation import cross_val_scores
from core.validation.folds import N_FOLDS
from core.validation.kernel_tuning import Tuning, tune

_MANY_CLASSES = 0.25
"""work of an estimate of three classes and more beside that of two: nothing is solved along fractions"""


class Solutions(NamedTuple):
    """The solutions of the two-class problems, their validation and their report."""

    results: list[Result]
    validate: Callable[[], Validated | None]
    """held-out scores and the calibration by them, None if nothing asks for it; raises Stopped"""
    report: dict[str, Any] | None
    warm: bool = False
    """whether a solver started from another model"""


def solve(checked: CheckedTask, documents: Compact, run: Run) -> Solutions:
    """The solutions of one algorithm, class fractions known or estimated; raises Stopped before there is one."""
    task = checked.task
    points = starting_points(
        task.start, checked.algorithm, task.rows, checked.order, documents.features, checked.classes, run.watch
    )
    fractions, report, span = _class_fractions(checked, documents, run)
    tuning, span = _tuning(checked, documents, run, span)
    report = report if tuning is None else {**tuning.report, **(report or {})}
    chosen = {} if tuning is None else tuning.chosen
    solver = _OneVsRest(checked, run, fractions, points, chosen, checked.part_numbers(documents.features))
    warm = any(point is not None for point in points)
    labeled = np.arange(len(checked.class_indices))
    if not checked.options.needs_probabilities:
        return Solutions(solver.solve(documents.rows, labeled, span), lambda: None, report, warm)
    spans = span.equal(N_FOLDS + 1)
    results = solver.solve(documents.rows, labeled, spans[0])

    def solve_without(fold: int, rows: SparseRows, kept: NDArray[np.int64]) -> list[Result]:
        cold: Points = [None] * len(points)  # the points to start from know the labels
        return replace(solver, points=cold, fold=fold).solve(rows, kept, spans[fold + 1])

    def validate() -> Validated:
        held_out = cross_val_scores(
            documents.rows,
            checked.class_indices,
            len(points),
            task.seed,
            solve_without,
            run.watch,
            run.context.engine.space,
        )
        return Validated(
            fit_calibration(held_out, checked.class_indices, unlabeled_scores(results), fractions, run.watch),
            held_out,
        )

    return Solutions(results, validate, report, warm)


def _class_fractions(
    checked: CheckedTask, documents: Compact, run: Run
) -> tuple[Vector | None, dict[str, Any] | None, Span]:
    """Class fractions for a solver that needs them, their place in the report, and the stretch of work that is left;
    raises Stopped.
    """
    known = checked.known_fractions()
    if known is not None:
        return known, {"class_fractions": by_class(known, checked.classes)}, WHOLE
    if not checked.options.needs_fractions:
        return None, None, WHOLE
    share = checked.options.estimation_share * (1.0 if len(checked.classes) == 2 else _MANY_CLASSES)
    centred = len(checked.parts_of(documents.features)) < 2
    data = with_frequent_features(
        checked.selection_data(documents.rows, centred, run.watch, run.context.engine.space), run.watch
    )
    with run.scheduler(data.scaled.rows) as scheduler:
        estimate = estimate_fractions(scheduler, data, Span(0.0, share), checkpoint=run.watch, held_out=False)
    return estimate.fractions, estimate.report(checked.classes), Span(share, 1.0)


def _tuning(checked: CheckedTask, documents: Compact, run: Run, span: Span) -> tuple[Tuning | None, Span]:
    """Options of a kernel method as the data choose them, if at all, and the stretch of work that is left; raises
    Stopped.
    """
    options = checked.options
    if not isinstance(options, KernelChoice) or not options.is_tuned:
        return None, span
    before, rest = span.between(0.0, options.tuning_share), span.between(options.tuning_share, 1.0)
    tuning = tune(
        run.scheduler,
        documents.rows,
        checked.class_indices,
        checked.classes,
        options,
        checked.task.seed,
        run.watch,
        before,
    )
    run.watch.begin(Phase(checked.task.algorithm))
    return tuning, rest


@dataclass(frozen=True)
class _OneVsRest:
    """The solver of a task, for all its two-class problems."""

    checked: CheckedTask
    run: Run
    fractions: Vector | None
    """shape (n_classes,), for a solver that needs them"""
    points: Points
    chosen: Mapping[str, float]
    """options that the data chose"""
    part_of: NDArray[np.int64] | None
    """see Problem"""
    fold: int | None = None
    """fold that is left out for calibration"""

    def solve(self, rows: SparseRows, labeled: NDArray[np.int64], span: Span) -> list[Result]:
        """Solutions over rows, first the labeled ones at these positions among all labeled ones; if stopped, the best
        iterates.
        """
        solver = load(self.checked.algorithm, len(self.points))
        options, seed = self.checked.options, self.checked.task.seed
        class_indices = self.checked.class_indices[labeled]
        costs = np.concatenate([self.checked.weights[labeled], np.ones(rows.n_rows - len(labeled))])

        def begin(positive: int, point: Vector | None) -> Steps:
            y = np.where(class_indices == positive, 1.0, -1.0)
            problem = replace(Problem.of(rows, y, costs, seed), part_of=self.part_of)
            own = (
                {}
                if self.fractions is None
                else {"positive_fraction": float(self.fractions[positive]), "class_fractions": None}
            )
            return solver(problem, options.model_copy(update={**self.chosen, **own}), point)

        classes = self.checked.classes
        phases = phases_of(classes)
        if self.fold is not None:
            phases = [phase.to(CALIBRATION, fold=self.fold) for phase in phases]
        places = zip(phases, positives_of(len(classes)), self.points, strict=True)
        with self.run.scheduler(rows) as scheduler:
            return scheduler.run({phase: partial(begin, positive, point) for phase, positive, point in places}, span)
