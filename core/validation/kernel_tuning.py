"""Tuning of the kernel methods: C and gamma by cross-validation of the SVM with hinge loss on the labeled documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.engine.requests import KernelRange, KernelSpec, Report, Steps
from core.engine.runner import Scheduler
from core.kernels.cache import RowCache
from core.kernels.gamma import resolve_kernel
from core.numerics.elementary import Vector, log_add_exp
from core.one_vs_rest import labels_of, phases_of, positives_of
from core.optimizers.smo import DEFAULT_MARGIN, Multipliers, feature_variance, hinge_terms, kernel_spec, maximise
from core.options.base import LARGEST_WEIGHT, LEAST_WEIGHT
from core.options.kernel import MOST_LABELS, KernelChoice
from core.problem import NO_RESULT, Status
from core.progress import Checkpoint, Phase, Span
from core.validation.calibration import SLOPE
from core.validation.folds import evenly_spaced, folds_of

MARGINS = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""values of C that are tried, in units of 1 / the variance of the labeled documents in the space of the kernel"""
GAMMA_FACTORS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
"""values of gamma that are tried, in units of the rule ``scale``"""
FEW_LABELS = 100
"""labeled documents below which neither a C under 10 nor a gamma over 1 of these units is tried, and folds are drawn
three times

With 20 and 50 labels of eight sets both won by chance where they did harm, most to transductive solutions: errors of
.169 for .158.
"""
TUNING_FOLDS, DRAWS_OF_FEW = 5, 3
"""folds, and how often they are drawn of few labels: more than for calibration, since these solutions cost little and
should see most labels"""
TOLERANCE = 1e-2
"""violation of the optimality conditions at which these solutions end: scores of held-out documents need no more
digits"""
MOST_STEPS, STEPS_PER_LABEL = 500_000, 2_000
"""steps of a solution, at most: so many, or so many for each label if that is more

Noisy labels took up to 900 a label. Documents of mixed scale may take any number, and there are hundreds of solutions.
"""
_SPREAD = 0.05
"""share of the work on a kernel that its variance takes"""
_CACHE_BYTES = 4 * MOST_LABELS**2


class Tuning(NamedTuple):
    """The options that the data chose."""

    chosen: dict[str, float]
    """C, gamma, or both"""
    report: dict[str, Any]
    """what was tried, what it showed, what was chosen and why, as JSON"""


class _Labels(NamedTuple):
    """The labeled documents that take part."""

    rows: SparseRows
    class_indices: NDArray[np.integer[Any]]
    """shape (n_rows,)"""
    draws: list[NDArray[np.int64]]
    """of folds, each of shape (n_rows,): see core.validation.folds"""
    classes: Sequence[str | int]

    @classmethod
    def of(
        cls, rows: SparseRows, class_indices: NDArray[np.integer[Any]], classes: Sequence[str | int], seed: int
    ) -> Self:
        """With folds drawn once or, of few labels, several times."""
        n_draws = DRAWS_OF_FEW if len(class_indices) < FEW_LABELS else 1
        return cls(
            rows,
            class_indices,
            [folds_of(class_indices, seed + draw, TUNING_FOLDS) for draw in range(n_draws)],
            classes,
        )

    @property
    def known(self) -> NDArray[np.bool_]:
        """shape (n_rows,): whether some fold of each draw leaves the row out."""
        return np.asarray(self.draws[0] >= 0)

    @property
    def suffice(self) -> bool:
        """Whether labels of two classes can be left out."""
        return len(np.unique(self.class_indices[self.known])) > 1

    @property
    def are_few(self) -> bool:
        """Whether there are so few that extreme values would win by chance."""
        return len(self.class_indices) < FEW_LABELS

    @property
    def margins(self) -> tuple[float, ...]:
        """The values of C to try, in units of 1 / variance."""
        if not self.suffice:
            return (DEFAULT_MARGIN,)
        return tuple(margin for margin in MARGINS if margin >= 10 or not self.are_few)

    @property
    def gamma_factors(self) -> tuple[float, ...]:
        """The values of gamma to try, in units of the rule ``scale``."""
        return tuple(factor for factor in GAMMA_FACTORS if factor <= 1 or not self.are_few)


class _Trial(NamedTuple):
    """A kernel and the values of C that were tried with it."""

    kernel: KernelSpec
    weights: list[float]
    """C of the SVM with hinge loss, ascending"""
    figures: list[tuple[int, float]]
    """for each C that took not too many steps the number of errors on labels left out, and their negative
    log-likelihood; empty where none can be left out"""


@dataclass
class _Path:
    """Held-out scores of one fold of one two-class problem, for ascending values of C; filled when the steps have been
    run.
    """

    weights: Sequence[float]
    hidden: NDArray[np.bool_]
    """shape (n_labeled,): rows of the fold"""
    scores: NDArray[np.float64] = field(init=False)
    """shape (n_weights, n_hidden)"""
    n_solved: int = field(init=False)
    """number of the first weights that were solved within the steps; the others have scores of NaN"""

    def steps(self, y: Vector, kernel: KernelSpec) -> Steps:
        """Solve for each C from the multipliers of the one before, which obey its bounds, too; rows of the fold cost
        nothing. A C that takes too many steps ends it, since a larger one would take more.
        """
        self.n_solved = len(self.weights)
        self.scores = np.full((len(self.weights), int(np.count_nonzero(self.hidden))), np.nan)
        yield _BEGINNING
        cache: RowCache = yield _kernel_rows(kernel, len(y))
        multipliers, share = Multipliers.zero(len(y)), 1.0 / len(self.weights)
        most_steps = max(MOST_STEPS, STEPS_PER_LABEL * len(y))
        for place, weight in enumerate(self.weights if cache.gram.fits_float32 else ()):
            terms = hinge_terms(y, np.where(self.hidden, 0.0, weight))
            found = yield from maximise(
                cache, terms, multipliers, TOLERANCE, Report(_PHASE, 0, 0.0, None, place * share, share), most_steps
            )
            if found.status is Status.ITERATION_LIMIT:
                self.n_solved = place
                break
            self.scores[place] = (multipliers.kernel_sums + found.intercept)[self.hidden]
        return NO_RESULT


@dataclass
class _Spread:
    """The variance of the labeled documents in the space of a kernel; known when the steps have been run."""

    variance: float = 1.0

    def steps(self, kernel: KernelSpec, n_labeled: int) -> Steps:
        """Compute it from all pairs."""
        yield _BEGINNING
        cache: RowCache = yield _kernel_rows(kernel, n_labeled)
        if cache.gram.fits_float32:
            self.variance = yield from feature_variance(cache, n_labeled)
        return NO_RESULT


def tune(
    scheduler_of: Callable[[SparseRows], Scheduler],
    rows: SparseRows,
    class_indices: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    options: KernelChoice,
    seed: int,
    checkpoint: Checkpoint,
    span: Span,
) -> Tuning:
    """Choose C, gamma or both, whichever the options leave to the data.

    ``rows`` are the labeled rows, then the unlabeled ones; ``class_indices`` of shape (n_labeled,) are the classes of
    the first, positions in ``classes``. ``scheduler_of`` makes what runs solvers over some rows; ``seed`` decides the
    folds; ``checkpoint`` is called between slices of other work; all is a ``span`` of the whole.

    For each gamma the SVM with hinge loss is solved for ascending C without the labels of each fold. The pair is chosen
    by which most labels left out are predicted right; of equals that by which they are likeliest, then the smaller
    gamma, then the smaller C. Pairs that take too many steps are left out. Where labels of two classes cannot be left
    out, C and gamma are what suits the scale of the kernel values. All processors compute the same bits: a pair that
    wins by a digit must be the same everywhere.
    Raises Stopped.
    """
    taken = sample(class_indices, MOST_LABELS)
    labels = _Labels.of(gathered(rows, taken, checkpoint), class_indices[taken], classes, seed)
    kernels = _kernels(options, rows, len(class_indices), labels, checkpoint)
    trials = []
    for kernel, own in zip(kernels, span.equal(len(kernels)), strict=True):
        with scheduler_of(labels.rows) as scheduler:
            trials.append(_trial(scheduler, kernel, labels, options, own))
    places = [(number, place) for number, trial in enumerate(trials) for place in range(len(trial.figures))]
    best = min(places, key=lambda pair: (trials[pair[0]].figures[pair[1]], pair), default=(0, 0))
    return _tuning(options, trials, best, labels)


def sample(class_indices: NDArray[np.integer[Any]], most: int) -> NDArray[np.int64]:
    """Ascending positions of at most ``most`` labels, evenly spaced: the same share of each class, but at least two."""
    share = most / max(most, len(class_indices))
    return evenly_spaced(class_indices, lambda count: max(2, int(share * count)))


def _kernels(
    options: KernelChoice, rows: SparseRows, n_labeled: int, labels: _Labels, checkpoint: Checkpoint
) -> list[KernelSpec]:
    """The kernels to try, ascending by gamma, which is a number."""
    spec = kernel_spec(options)
    trained = rows if options.uses_unlabeled or spec.gamma == "median" else rows.between(0, n_labeled)
    if options.kernel == "rbf" and options.gamma == "auto" and labels.suffice:
        scale = resolve_kernel("rbf", "scale", spec.degree, spec.coef0, trained, checkpoint).gamma
        return [spec._replace(gamma=factor * scale) for factor in labels.gamma_factors]
    return [spec._replace(gamma=resolve_kernel(*spec, trained, checkpoint).gamma)]


def _trial(scheduler: Scheduler, kernel: KernelSpec, labels: _Labels, options: KernelChoice, span: Span) -> _Trial:
    """Solve with one kernel for all values of C; raises Stopped."""
    if options.C == "auto":
        spread = _Spread()
        scheduler.run(
            {Phase().to("tuning"): partial(spread.steps, kernel, len(labels.class_indices))}, span.between(0.0, _SPREAD)
        )
        weights = [within_range(margin / spread.variance) for margin in labels.margins]
    else:
        weights = [options.C / options.weight_unit]
    return _Trial(
        kernel,
        weights,
        _cross_validate(scheduler, kernel, weights, labels, span.between(_SPREAD, 1.0)) if labels.suffice else [],
    )


def _cross_validate(
    scheduler: Scheduler, kernel: KernelSpec, weights: list[float], labels: _Labels, span: Span
) -> list[tuple[int, float]]:
    """The figures for each C that was solved for all folds, over all draws of them; raises Stopped."""
    known, own = labels.known, labels.class_indices
    ys = [np.where(own == positive, 1.0, -1.0) for positive in positives_of(len(labels.classes))]
    paths = {
        (draw, fold, column): _Path(weights, folds == fold)
        for draw, folds in enumerate(labels.draws)
        for fold in range(int(folds.max()) + 1)
        for column in range(len(ys))
    }
    phases = phases_of(labels.classes)
    steps: dict[Phase, Callable[[], Steps]] = {
        phases[column].to("tuning", fold=draw * TUNING_FOLDS + fold): partial(path.steps, ys[column], kernel)
        for (draw, fold, column), path in paths.items()
    }
    scheduler.run(steps, span)
    held_out = np.full((len(weights), len(labels.draws), len(own), len(ys)), np.nan)
    for (draw, _, column), path in paths.items():
        held_out[:, draw, path.hidden, column] = path.scores
    y, n_draws = np.column_stack(ys)[known], len(labels.draws)
    return [
        figures(scores.reshape(-1, len(ys)), np.tile(y, (n_draws, 1)), np.tile(own[known], n_draws))
        for scores in held_out[: min(path.n_solved for path in paths.values()), :, known]
    ]


def figures(
    scores: NDArray[np.float64], y: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]
) -> tuple[int, float]:
    """The number of errors and the negative log-likelihood of labels, by scores of shape (n, n_problems); not finite
    ones are all wrong.

    ``y`` of the same shape has the labels of the two-class problems, −1 and +1; ``class_indices`` of shape (n,) the
    classes.
    """
    if not np.isfinite(scores).all():
        return len(scores), np.inf
    return int(np.count_nonzero(labels_of(scores) != class_indices)), float(
        log_add_exp(np.zeros_like(scores), -SLOPE * y * scores).sum()
    )


def _tuning(options: KernelChoice, trials: Sequence[_Trial], best: tuple[int, int], labels: _Labels) -> Tuning:
    """The choice, and the report on it."""
    trial = trials[best[0]]
    chosen = {"C": within_range(options.weight_unit * trial.weights[best[1]])} if options.C == "auto" else {}
    chosen |= {"gamma": float(trial.kernel.gamma)} if options.gamma == "auto" and options.kernel != "linear" else {}
    n_known = int(np.count_nonzero(labels.known)) if labels.suffice else 0
    n_left_out = n_known * len(labels.draws)
    tried = [
        ({} if options.kernel == "linear" else {"gamma": float(each.kernel.gamma)})
        | {"C": [within_range(options.weight_unit * weight) for weight in each.weights]}
        | ({"right": [n_left_out - errors for errors, _ in each.figures]} if n_known else {})
        for each in trials
    ]
    report: dict[str, Any] = {"tried": tried}
    if trial.figures:
        n_right = n_left_out - trial.figures[best[1]][0]
        report["held_out"] = {"labels": n_known, "folds": TUNING_FOLDS, "draws": len(labels.draws), "right": n_right}
    return Tuning(chosen, {"chosen": {**chosen, "why": _why(trials, n_known, len(labels.draws), best)}, **report})


def tuning_warnings(report: Mapping[str, Any]) -> list[str]:
    """Warnings about values of C and gamma that took too many steps to be compared, by the report of a training."""
    tried = [trial for trial in report.get("tried", []) if "right" in trial]
    missed = sum(len(trial["C"]) - len(trial["right"]) for trial in tried)
    if not missed:
        return []
    return [
        f"{missed} settings of C and gamma took too many steps to be compared, and were left out; bring the features "
        "to one scale, or give C and gamma"
    ]


def _why(trials: Sequence[_Trial], n_known: int, n_draws: int, best: tuple[int, int]) -> str:
    if not trials[best[0]].figures:
        return (
            "no setting could be solved in the steps that a comparison may take; these are the smallest of those tried"
            if n_known
            else "too few labels to compare values by: none can be left out, or only of one class; these suit the "
            "scale of the documents"
        )
    errors = [each for trial in trials for each, _ in trial.figures]
    least, total = trials[best[0]].figures[best[1]][0], n_known * n_draws
    times = "once" if n_draws == 1 else f"{n_draws} times"
    found = (
        f"{n_known} labels were left out {times} and predicted by supervised models: {total - least} of {total} right"
    )
    found += f", the most of {len(errors)} settings"
    equal = errors.count(least)
    return (
        found if equal == 1 else f"{found}; of {equal} that are right as often, these values make the labels likeliest"
    )


def within_range(weight: float) -> float:
    """The weight that the options allow and that is nearest."""
    return float(min(max(weight, LEAST_WEIGHT), LARGEST_WEIGHT))


def _kernel_rows(kernel: KernelSpec, n_labeled: int) -> KernelRange:
    return KernelRange(kernel, 0, n_labeled, None, _CACHE_BYTES, reproducible=True)


_PHASE = Phase("kernel_svm")
_BEGINNING = Report(_PHASE, 0, 0.0, None, 0.0)
