"""The candidates of a selection: how well they predict labels left out, their estimates of the class fractions, and
their models.

They learn from blocks of columns: all features or, of documents of several parts, each part alone and all side by side.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.documents.rows import MEMORY, Space, SparseRows
from core.engine.requests import Steps
from core.engine.runner import Scheduler
from core.kernels.function import Kernel
from core.kernels.gamma import resolve_kernel
from core.numerics.elementary import Matrix, Vector
from core.options.auto import AutoOptions
from core.options.linear import SvmOptions, TsvmOptions
from core.problem import Linear, Problem, Result, ensure_complete
from core.progress import TOGETHER, Phase, Span, Watch
from core.selection.class_fractions import LAMBDA, FractionEstimate, combine_evidence, estimate_fractions
from core.selection.data import SelectionData, labeled_alone, with_features
from core.selection.held_out import (
    SPARSE_TOLERANCE,
    TOLERANCE,
    Fits,
    FoldFit,
    FoldScores,
    compared_svm,
    held_out_scores,
)
from core.selection.prediction import Judgement, Prediction, judge
from core.selection.registry import METHODS, Method


class Selecting(NamedTuple):
    """Documents and the task of a selection over them."""

    rows: SparseRows
    """the labeled ones first"""
    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,)"""
    classes: Sequence[str | int]
    options: AutoOptions
    given: NDArray[np.float64] | None
    """class fractions, shape (n_classes,), if they are known"""
    data_of: Callable[[SparseRows, bool], SelectionData]
    """the data of a selection over rows with some of the columns, centred or not; raises Stopped"""
    scheduler_of: Callable[[SparseRows], Scheduler]
    """what runs solvers over some rows"""
    watch: Watch
    """the checkpoint of work outside the solvers, which can end a part of it when its time is over"""
    parts: Mapping[str, NDArray[np.int64]] = {}
    """of documents of several parts the columns of each that has any, ascending, by name"""
    space: Space = MEMORY
    """where copies of the rows lie"""
    linear: bool = False
    """whether the model must be linear, of one part, too"""
    supervised: bool = False
    """whether it learns from labeled documents alone"""


class SelectionBlock(NamedTuple):
    """Columns of the rows, and the data of a selection over them."""

    name: str
    """of the part, TOGETHER, or nothing where there is one block"""
    columns: NDArray[np.int64]
    """ascending"""
    data: SelectionData
    complete: float = 1.0
    """share of the unlabeled documents that have every part of the block"""

    def on_original_features(self, result: Result) -> Result:
        """The result with a decision over the block's columns as they came."""
        scaled, decision = self.data.scaled, result.decision
        if isinstance(decision, Linear):
            return replace(result, decision=scaled.on_original(decision))
        # of label spreading or kernel ridge regression, whose kernels are of distances: what is taken off all rows does
        # not change them
        if scaled.equalised:
            return replace(result, decision=decision._replace(scales=scaled.scales))
        kernel, scale = decision.kernel, float(scaled.scales.max(initial=0.0))
        return replace(result, decision=decision._replace(kernel=kernel._replace(gamma=kernel.gamma * scale**2)))

    def over_all_columns(self, result: Result, n_features: int) -> Result:
        """The result with a decision over all columns instead of the block's; a kernel's has all of them already."""
        if not isinstance(result.decision, Linear):
            return result
        coefficients = np.zeros(n_features)
        coefficients[self.columns] = result.decision.coefficients
        return replace(result, decision=Linear(coefficients, result.decision.intercept))


def blocks_of(task: Selecting) -> list[SelectionBlock]:
    """The blocks, the one of all columns last; raises Stopped."""
    every = np.arange(task.rows.n_features)
    if len(task.parts) < 2:
        return [SelectionBlock("", every, task.data_of(task.rows, True))]
    blocks, unlabeled = list[SelectionBlock](), task.rows.between(len(task.class_indices), task.rows.n_rows)
    whole = np.ones(unlabeled.n_rows, bool)
    for name, columns in task.parts.items():
        rows = with_features(task.rows, np.isin(every, columns), task.watch, task.space)
        present = unlabeled.held(int(columns[0]), int(columns[-1]) + 1)
        blocks.append(_block(task, name, columns, rows, present))
        whole &= present
    return [*blocks, _block(task, TOGETHER, every, task.rows, whole)]


def _block(
    task: Selecting, name: str, columns: NDArray[np.int64], rows: SparseRows, present: NDArray[np.bool_]
) -> SelectionBlock:
    """The block of rows that have these columns alone; ``present``, shape (n_unlabeled,), says which documents have all
    of its parts.
    """
    data = task.data_of(rows, False)  # a part that a document lacks is zeros, which would be far from a centre
    data = replace(data, phases=[phase._replace(part=name) for phase in data.phases])
    return SelectionBlock(name, columns, data, np.count_nonzero(present) / max(1, len(present)))


Solvers = list[Callable[[], Steps]]

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1)
"""values of λ that are tried for the supervised SVM, on rows of mean square norm 1"""
_TUNED, _ESTIMATED, _SOLVED = 0.05, 0.15, 0.85
"""shares of the work that are done when λ of the supervised SVM is found, when the fractions are estimated, and when
the transductive SVM is solved"""
_MOST_SCALE = 1e12
"""bound on the largest scale of a feature and on its inverse: within it float32 holds distances of the original rows,
with digits to spare"""


class ModelSpec(NamedTuple):
    """The model that a selection asks of a candidate."""

    scheduler: Scheduler
    """runs solvers over the rows with all features"""
    data: SelectionData
    """of all features"""
    fractions: Vector | None
    """class fractions, shape (n_classes,); None without unlabeled documents"""
    tolerance: float
    span: Span
    """part of the work for what must be done before the solvers are run"""

    @property
    def positive_fractions(self) -> list[float]:
        """The fraction of the positive class of each two-class problem."""
        assert self.fractions is not None
        return [float(fraction) for fraction in self.fractions[self.data.positives]]


class Candidate(NamedTuple):
    """A method that may be selected, alone or with others."""

    algorithm: str
    """name in the report"""
    title: str
    """name in words"""
    held_out: Matrix
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels; NaN where no fold
    leaves the row out"""
    judgement: Judgement
    """what labels left out say of it"""
    solvers: Callable[[ModelSpec], Solvers]
    """of a solver for each two-class problem; raises Stopped"""
    tried: Mapping[str, Any]
    """values that were tried, as JSON"""
    lambda_: float | None = None
    """λ, of the SVMs"""
    found: FractionEstimate | None = None
    """class fractions by this method; None of the supervised SVM, which has none"""
    linear: bool = True
    """whether its scores are linear, so that they can be added to others"""
    uses_unlabeled: bool = True
    """whether it learns from unlabeled documents"""
    generative: bool = False
    """whether it models the documents of a class, and not the border between classes"""
    odds: float = 1.0
    """odds against the others, which multiply its weight by labels left out"""


@dataclass(frozen=True)
class Trial:
    """The documents that a method is tried on."""

    scheduler: Scheduler
    """runs solvers over the rows of ``frequent``"""
    data: SelectionData
    """of all features"""
    frequent: SelectionData
    """of the frequent features"""
    found: FractionEstimate
    """class fractions: of three classes and more of all methods, of two of the supervised SVM"""
    span: Span
    """part of the work that solvers over frequent features are"""
    watch: Watch
    of_parts: bool
    """whether the documents have several parts, whose models must be linear"""

    @property
    def suits_kernels(self) -> bool:
        """Whether the model may be one of a kernel, distances are meaningful, and float32 holds them."""
        largest = float(self.data.scaled.scales.max(initial=0.0))
        return not self.of_parts and self.data.dense and 1 / _MOST_SCALE < largest < _MOST_SCALE

    @cached_property
    def kernel(self) -> Kernel:
        """The radial kernel of the median distance."""
        return resolve_kernel("rbf", "median", 3, 0.0, self.data.scaled.rows, self.watch)

    def begin(self, method: Method) -> None:
        """Report that this method is tried next."""
        self.watch.begin(Phase(method.key).to("candidate"))

    def estimate(self, held_out: FoldScores, predicted: Prediction) -> FractionEstimate:
        """The class fractions, of two classes by a method's own scores and prediction; raises Stopped."""
        if self.found.grid is None:
            return self.found
        return combine_evidence(self.data, held_out, predicted, self.found.grid, self.watch)


def candidates_of(
    scheduler_of: Callable[[SparseRows], Scheduler],
    data: SelectionData,
    frequent: SelectionData,
    given: Vector | None,
    span: Span,
    watch: Watch,
    of_parts: bool,
    supervised: bool = False,
) -> Generator[Candidate]:
    """All candidates one by one, the supervised SVM first; it is alone if it must be (``supervised``), and without
    unlabeled documents. Raises Stopped.

    ``scheduler_of`` makes what runs solvers over some rows. ``frequent`` has the frequent features of ``data``.
    ``given`` are the class fractions, if they are known. ``of_parts``: the documents have several parts; methods whose
    models are not linear are left out.
    """
    alone = supervised or not data.problems[0].n_unlabeled
    labeled = labeled_alone(frequent, watch)
    with scheduler_of(labeled.scaled.rows) as scheduler:
        first = grid_search(scheduler, labeled, span if alone else span.between(0.0, _TUNED))
    yield first
    if alone:
        return
    with scheduler_of(frequent.scaled.rows) as scheduler:
        if given is None:
            found = estimate_fractions(scheduler, frequent, span.between(_TUNED, _ESTIMATED), watch)
        else:
            found = FractionEstimate(given)
        yield transductive(scheduler, frequent, found, span.between(_ESTIMATED, _SOLVED))
        trial = Trial(scheduler, data, frequent, found, span.between(_SOLVED, 1.0), watch, of_parts)
        for method in METHODS.values():
            if method.applies(data.size):
                module, _, function = method.trial.partition(":")  # imported at first use
                candidate: Candidate | None = getattr(import_module(module), function)(method, trial)
                if candidate is not None:
                    yield candidate


def grid_search(scheduler: Scheduler, data: SelectionData, span: Span, lambdas: Sequence[float] = LAMBDAS) -> Candidate:
    """The supervised SVM with the λ by which labels left out are likeliest, of equals the larger.

    ``data`` are of labeled rows. Raises Stopped.
    """
    places = [(column, fold) for column in range(len(data.problems)) for fold in range(data.n_folds)]
    fits = {lambda_: {place: FoldFit() for place in places} for lambda_ in lambdas}
    steps: dict[Phase, Callable[[], Steps]] = {
        data.phases[column].to("svm/lambda", lambda_, fold=fold): partial(
            fit.steps, data.problems[column], data.folds == fold, partial(compared_svm, lambda_=lambda_)
        )
        for lambda_, of_lambda in fits.items()
        for (column, fold), fit in of_lambda.items()
    }
    scheduler.run(steps, span)
    candidates = [_supervised(data, lambda_, of_lambda) for lambda_, of_lambda in fits.items()]
    return max(candidates, key=lambda each: (each.judgement.log_likelihood, each.lambda_))


def _supervised(data: SelectionData, lambda_: float, fits: Fits) -> Candidate:
    held_out = held_out_scores(fits, data.folds, len(data.problems))

    def solvers(spec: ModelSpec) -> Solvers:
        options = SvmOptions(lambda_=lambda_, tolerance=spec.tolerance)
        return [partial(svm, problem, options) for problem in spec.data.problems]

    tried, judgement = {"lambda": list(LAMBDAS), "best_lambda": lambda_}, judged(data, held_out)
    return Candidate(
        "svm",
        "the supervised SVM",
        held_out,
        judgement,
        solvers,
        tried,
        lambda_,
        uses_unlabeled=False,
        # the transductive SVM errs on the same documents, and on fewer where the labels say something
        odds=1.0 - max(0.0, judgement.gained),
    )


def transductive(scheduler: Scheduler, data: SelectionData, found: FractionEstimate, span: Span) -> Candidate:
    """The transductive SVM at these class fractions; raises Stopped.

    Of sparse rows the model starts from the solution that is made here with all labels, which takes half the time. On
    dense rows the growing λ' finds better minima than any start.
    """

    def solver(problem: Problem, fraction: float, tolerance: float, start: Vector | None = None) -> Steps:
        options = TsvmOptions(
            lambda_=LAMBDA, lambda_u=data.unlabeled_weight, tolerance=tolerance, positive_fraction=fraction
        )
        # over all features only when it begins: there may be many classes
        return tsvm(problem, options, None if start is None else data.over_all_features(start, problem.rows.n_features))

    n_problems, tolerance = len(data.problems), TOLERANCE if data.dense else SPARSE_TOLERANCE
    rough = [partial(solver, fraction=each, tolerance=tolerance) for each in found.fractions[data.positives].tolist()]
    fits = {(column, fold): FoldFit() for column in range(n_problems) for fold in range(data.n_folds)}
    steps: dict[Phase, Callable[[], Steps]] = {
        data.phases[column].to("candidate", fold=fold): partial(
            fit.steps, data.problems[column], data.folds == fold, rough[column]
        )
        for (column, fold), fit in fits.items()
    }
    with_all: dict[Phase, Callable[[], Steps]] = {
        phase.to("candidate"): partial(each, problem)
        for phase, problem, each in zip(data.phases, data.problems, rough, strict=True)
        if not data.dense
    }
    results = scheduler.run(with_all | steps, span)
    ensure_complete(results)
    starts = [result.coefficients for result in results[:n_problems]] if with_all else [None] * n_problems
    held_out = held_out_scores(fits, data.folds, n_problems)

    def solvers(spec: ModelSpec) -> Solvers:
        return [
            partial(solver, problem, fraction, spec.tolerance, start)
            for problem, fraction, start in zip(spec.data.problems, spec.positive_fractions, starts, strict=True)
        ]

    return Candidate(
        "tsvm",
        "the transductive SVM",
        held_out,
        judged(data, held_out),
        solvers,
        {"lambda": LAMBDA, "lambda_u": data.unlabeled_weight},
        LAMBDA,
        found,
    )


def judged(data: SelectionData, scores: Matrix) -> Judgement:
    """The judgement of held-out scores, shape (n_labeled, n_problems), by labels left out."""
    known = data.left_out
    return judge(scores[known], data.class_indices[known], data.weights[known])
