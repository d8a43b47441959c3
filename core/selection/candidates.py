"""The candidates of a selection: what labels left out say of each, what class fractions it estimates, and how its model is solved."""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.documents.rows import SparseRows
from core.engine.runner import Steps, Sweeper
from core.kernels.gamma import resolve_kernel
from core.options.linear import SvmOptions, TsvmOptions
from core.problem.problem import Problem
from core.progress import Checkpoint, Part
from core.selection.class_fractions import LAMBDA, FractionEstimate, combine_evidence, estimate_fractions
from core.selection.comparison import Judgement, judge
from core.selection.data import SelectionData
from core.selection.eligibility import MOST_KERNEL_LABELS, label_spreading_applies, naive_bayes_applies
from core.selection.fraction_path import SupervisedFit, held_out_scores
from core.selection.methods.kernel_ridge import RIDGES, KernelRidge
from core.selection.methods.label_spreading import NEIGHBOURS, LabelSpreading
from core.selection.methods.naive_bayes import NaiveBayes, weights_of
from core.selection.posterior import refine_grid
from core.selection.subsets import labeled_alone
from core.watch import Watch

Vector = NDArray[np.float64]
Solvers = list[Callable[[], Steps]]

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1)
"""values of λ that are tried for the supervised SVM, on rows of mean square norm 1"""
_TUNED, _ESTIMATED = 0.05, 0.85
"""shares of the work that are done when λ of the supervised SVM is found, and when the fractions are estimated"""
_MOST_SCALE = 1e12
"""bound on the largest scale of a feature and on its inverse: within it float32 holds distances of the original rows, with digits to spare"""


class Wanted(NamedTuple):
    """The model that a selection wants of a candidate."""

    sweeper: Sweeper
    """what runs solvers over the rows with all features"""
    data: SelectionData
    """of all features"""
    fractions: Vector | None
    """class fractions, shape (n_classes,); None without unlabeled documents"""
    tolerance: float
    part: Part
    """part of the work for what must be done before the solvers are run"""

    @property
    def positive_fractions(self) -> list[float]:
        """The fraction of the positive class of each two-class problem."""
        assert self.fractions is not None
        return [float(fraction) for fraction in self.fractions[self.data.positives]]


class Candidate(NamedTuple):
    """A method that may be selected, or be a part of what is."""

    algorithm: str
    """name in the report"""
    title: str
    """name in words"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels; NaN where no fold leaves the row out"""
    judgement: Judgement
    """what labels left out say of it"""
    solvers: Callable[[Wanted], Solvers]
    """of a solver for each two-class problem; raises Stopped"""
    tried: Mapping[str, Any]
    """what was tried, as JSON"""
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


def candidates_of(
    sweeper_of: Callable[[SparseRows], Sweeper],
    data: SelectionData,
    frequent: SelectionData,
    given: Vector | None,
    part: Part,
    watch: Watch,
    of_parts: bool,
) -> Generator[Candidate]:
    """All candidates one by one, the supervised SVM first; without unlabeled documents it is alone. Raises Stopped.

    ``sweeper_of`` makes what runs solvers over some rows. ``frequent`` has the frequent features of ``data``. ``given`` are the class fractions, if
    they are known. ``of_parts``: the documents have several parts; methods whose models are not linear, and naive Bayes of numbers, are left out.
    """
    alone = not data.problems[0].n_unlabeled
    labeled = labeled_alone(frequent, watch)
    with sweeper_of(labeled.scaled.rows) as sweeper:
        supervised = grid_search(sweeper, labeled, part if alone else part.part(0.0, _TUNED))
    yield supervised
    if alone:
        return
    with sweeper_of(frequent.scaled.rows) as sweeper:
        found = estimate_fractions(sweeper, frequent, part.part(_TUNED, _ESTIMATED), given, watch)
        yield transductive(frequent, found)
        if not of_parts and _label_spreading_applies(data):
            watch.begin("candidate/graph")
            kernel = resolve_kernel("rbf", "median", 3, 0.0, data.scaled.rows, watch)
            yield label_spreading(LabelSpreading(data, kernel, watch), data, found, given, watch)
            if len(data.class_indices) <= MOST_KERNEL_LABELS:
                watch.begin("candidate/ridge")
                yield kernel_ridge(KernelRidge(data, kernel, watch), data, found, given, watch)
        if _naive_bayes_applies(data, of_parts):
            yield naive_bayes(NaiveBayes.of(sweeper, frequent, found.grids, given, part.part(_ESTIMATED, 1.0), watch), frequent)


def grid_search(sweeper: Sweeper, data: SelectionData, part: Part) -> Candidate:
    """The supervised SVM with the λ by which labels left out are likeliest, of equals the larger; ``data`` are of labeled rows. Raises Stopped."""
    places = [(column, fold) for column in range(len(data.problems)) for fold in range(data.n_folds)]
    fits = {lambda_: {place: SupervisedFit() for place in places} for lambda_ in LAMBDAS}
    steps: dict[str, Callable[[], Steps]] = {
        f"{data.prefixes[column]}svm/lambda={lambda_:g}/fold={fold}/": partial(fit.steps, data.problems[column], data.folds == fold, lambda_)
        for lambda_, of_lambda in fits.items()
        for (column, fold), fit in of_lambda.items()
    }
    sweeper.run(steps, part)
    candidates = [_supervised(data, lambda_, of_lambda) for lambda_, of_lambda in fits.items()]
    return max(candidates, key=lambda each: (each.judgement.log_likelihood, each.lambda_))


def _supervised(data: SelectionData, lambda_: float, fits: Mapping[tuple[int, int], SupervisedFit]) -> Candidate:
    held_out = held_out_scores(fits, data.folds, len(data.problems))

    def solvers(wanted: Wanted) -> Solvers:
        return [partial(svm, problem, SvmOptions(lambda_=lambda_, tolerance=wanted.tolerance)) for problem in wanted.data.problems]

    tried = {"lambda": list(LAMBDAS), "best_lambda": lambda_}
    return Candidate("svm", "the supervised SVM", held_out, judged(data, held_out), solvers, tried, lambda_, uses_unlabeled=False)


def transductive(data: SelectionData, found: FractionEstimate) -> Candidate:
    """The transductive SVM, by the solutions that the estimate of the class fractions has made.

    The model starts from such a solution, which takes half the time. Of dense rows it does not: there the growing λ' finds better ones.
    """

    def steps(problem: Problem, options: TsvmOptions, start: Vector) -> Steps:
        # over all features only when it begins: there may be many classes
        return tsvm(problem, options, None if data.dense else data.over_all_features(start, problem.rows.n_features))

    def solvers(wanted: Wanted) -> Solvers:
        options = [TsvmOptions(lambda_=LAMBDA, tolerance=wanted.tolerance, positive_fraction=fraction) for fraction in wanted.positive_fractions]
        return [partial(steps, *each) for each in zip(wanted.data.problems, options, found.starts, strict=True)]

    tried = {"lambda": LAMBDA, "lambda_u": 1.0}
    return Candidate("tsvm", "the transductive SVM", found.held_out, judged(data, found.held_out), solvers, tried, LAMBDA, found)


def label_spreading(
    spreading: LabelSpreading, data: SelectionData, found: FractionEstimate, given: Vector | None, checkpoint: Checkpoint
) -> Candidate:
    """Label spreading, with the same fractions tried and its own estimated; raises Stopped."""
    own = combine_evidence(data, spreading.paths([refine_grid(grid) for grid in found.grids]), spreading.predicted, given, checkpoint)

    def solvers(wanted: Wanted) -> Solvers:
        return [partial(spreading.steps, column, fraction) for column, fraction in enumerate(wanted.positive_fractions)]

    tried = {"neighbours": NEIGHBOURS}
    return Candidate("graph", "label spreading", own.held_out, judged(data, own.held_out), solvers, tried, found=own, linear=False)


def kernel_ridge(fitted: KernelRidge, data: SelectionData, found: FractionEstimate, given: Vector | None, checkpoint: Checkpoint) -> Candidate:
    """Kernel ridge regression, with the kernel and the ridge found, and its own estimate of the fractions; raises Stopped."""
    own = combine_evidence(data, fitted.paths([refine_grid(grid) for grid in found.grids]), fitted.predicted, given, checkpoint)

    def solvers(wanted: Wanted) -> Solvers:
        return [partial(fitted.steps, column) for column in range(len(wanted.data.problems))]

    tried = {"best_gamma": fitted.best.kernel.gamma, "ridge": list(RIDGES), "best_ridge": fitted.best.ridge}
    judgement = judged(data, fitted.held_out)
    return Candidate("ridge", "kernel ridge regression", fitted.held_out, judgement, solvers, tried, found=own, linear=False, uses_unlabeled=False)


def naive_bayes(fitted: NaiveBayes, data: SelectionData) -> Candidate:
    """Naive Bayes. It is judged by the log-odds of a class against all others, which are not the scores of its model."""

    def solvers(wanted: Wanted) -> Solvers:
        assert wanted.fractions is not None
        whole = fitted.fitted_to(wanted.sweeper, wanted.data, wanted.part)
        intercepts = whole.intercepts(wanted.fractions)
        return [partial(whole.steps, positive, intercepts) for positive in wanted.data.positives]

    own, tried = fitted.estimate, {"unlabeled_weights": weights_of(data), "best_unlabeled_weight": fitted.weight}
    return Candidate("mixture", "naive Bayes", own.held_out, judged(data, fitted.margins), solvers, tried, found=own, generative=True)


def judged(data: SelectionData, scores: NDArray[np.float64]) -> Judgement:
    """What labels left out say of held-out scores, shape (n_labeled, n_problems)."""
    return judge(scores[data.left_out], data.class_indices[data.left_out])


def _label_spreading_applies(data: SelectionData) -> bool:
    """Whether neighbours are meaningful, and float32 holds their distances."""
    rows, scale = data.scaled.rows, float(data.scaled.scales.max(initial=0.0))
    offered = label_spreading_applies(rows.n_rows, rows.n_features, rows.n_nonzeros)
    return offered and 1 / _MOST_SCALE < scale < _MOST_SCALE


def _naive_bayes_applies(data: SelectionData, of_parts: bool) -> bool:
    """Whether documents are bags of terms, or rows of numbers and no parts; and not too many."""
    rows = data.scaled.rows
    if not naive_bayes_applies(rows.n_rows, rows.n_features, data.n_classes):
        return False
    return not of_parts if data.dense else not data.scaled.equalised and float(rows.values.min(initial=0.0)) >= 0
