"""From labeled and unlabeled documents to a model: columns, one-vs-rest, results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.checks import check_options, requested_fractions
from core.documents.reorder import Compact, compact
from core.documents.rows import SparseRows
from core.engine.runner import Steps, Sweeper, Tally, Vector
from core.engine.solver import load
from core.models.assembly import model_of
from core.models.linear import LinearModel
from core.models.model import Model
from core.models.warm_start import Points, starting_points
from core.one_vs_rest import n_problems, positives_of, prefixes_of
from core.options.auto import AutoOptions
from core.options.base import BalancedOptions, Options, SolverOptions
from core.options.kernel import KernelChoice
from core.problem.problem import Problem
from core.problem.result import Result, Status, stopped
from core.progress import WHOLE, Observer, Part, TracePoint
from core.registry import AUTO, OFFERED
from core.registry import algorithm as find_algorithm
from core.selection.auto import auto
from core.selection.class_fractions import estimate_fractions
from core.selection.data import SelectionData
from core.validation.calibration import Calibration, fit_calibration, fit_calibration_to_labels
from core.validation.cross_validation import cross_val_scores
from core.validation.folds import N_FOLDS
from core.watch import Stopped, Watch


@dataclass(frozen=True)
class Training:
    """A trained model and what is known of the documents that were unlabeled."""

    model: Model
    unlabeled: NDArray[np.int64]
    """shape (n_unlabeled,), ascending: positions of the documents that were unlabeled"""
    scores: NDArray[np.float64]
    """shape (n_unlabeled, 1 for two classes or n_classes): their scores"""
    probabilities: NDArray[np.float64] | None
    """shape (n_unlabeled, n_classes), or None where the model was not calibrated"""
    objective: float
    """of the two-class problem, or the sum over those of one-vs-rest"""
    status: Status
    """the least satisfying of the solvers' endings"""
    warnings: list[str]
    trace: list[TracePoint]
    passes: float
    """over the nonzeros, summed over all that was solved, for estimates and probabilities too"""
    report: dict[str, Any] | None = None
    """what was estimated and chosen, and on what grounds, as JSON; of auto also what was tried; None where nothing was left to find"""


def train(
    rows: SparseRows,
    class_indices: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    algorithm: str,
    options: Mapping[str, Any],
    *,
    seed: int = 0,
    start: Model | None = None,
    observer: Observer | None = None,
    part: Part = WHOLE,
    began: float | None = None,
    threads: int | None = None,
    max_model_bytes: int | None = None,
) -> Training:
    """Train a model on documents of which some are labeled.

    ``class_indices`` of shape (n_rows,) hold each document's position in ``classes`` (sorted), or -1 where it is unlabeled. Two classes make one
    problem with the second as the positive one; more make one-vs-rest, a problem a class, run side by side. ``seed`` decides the random numbers of
    algorithms that draw any. Classes of which no document is labeled are left out. From ``start``, the model of
    nearly the same documents, as after some more labels, training takes a fraction of the passes; classes that it does not have start from
    nothing. A stop asked for by ``observer`` returns the best iterates with status ``cancelled``; ``part`` and ``began`` are of the work that it
    is told of, as in core.watch.Watch.
    Raises UnknownAlgorithm, InvalidOption, InvalidDocuments, and ModelTooLarge as soon as a solver knows that the documents that the model keeps and
    their weights will take more than ``max_model_bytes``.
    """
    labeled, unlabeled = np.flatnonzero(class_indices >= 0), np.flatnonzero(class_indices < 0)
    present, class_indices = np.unique(class_indices[labeled], return_inverse=True)
    classes = [classes[position] for position in present]
    parsed = check_options(algorithm, options, classes, rows.n_rows)
    order, watch = np.concatenate([labeled, unlabeled]), Watch(observer, part, began)
    watch.latest = watch.latest._replace(phase=algorithm)
    points: Points = [None] * n_problems(len(classes))
    try:
        documents = compact(rows, order, watch)
        if start is not None:
            points = starting_points(start, find_algorithm(algorithm), rows, order, documents.features, classes, watch)
        means = _Means(threads, max_model_bytes, watch, Tally())
        given = _given_fractions(parsed, class_indices, classes, len(unlabeled))
        if isinstance(parsed, AutoOptions):
            found = _chosen(documents, class_indices, classes, parsed, given, seed, means)
        else:
            found = _solved(documents, class_indices, classes, algorithm, parsed, given, points, seed, means)
    except Stopped:
        return _nothing(rows.n_features, classes, unlabeled)
    model = model_of(documents, order, rows.n_features, classes, [result.decision for result in found.results])
    model = model if found.calibration is None else replace(model, calibration=found.calibration)
    start_ignored = start is not None and all(point is None for point in points)
    return _training(model, unlabeled, found, _warnings(parsed, len(unlabeled), found.results, start_ignored), means)


def _training(model: Model, unlabeled: NDArray[np.int64], found: "_Found", warnings: list[str], means: "_Means") -> Training:
    """What is known when all is solved; the observer is told of the end."""
    results, watch = found.results, means.watch
    trace, status = _trace_of(results), reduce(Status.worse, (result.status for result in results))
    if status is not Status.CANCELLED:
        # what was told last may lie back by all that takes no time to solve
        watch.end(trace[-1] if trace else watch.latest)
    scores = np.column_stack([result.unlabeled_scores for result in results])
    return Training(
        model=model,
        unlabeled=unlabeled,
        scores=scores,
        probabilities=model.probabilities(scores),
        objective=sum(result.objective for result in results),
        status=status,
        warnings=warnings,
        trace=[watch.of_all(point) for point in trace],
        passes=means.tally.passes,
        report=found.report,
    )


def _trace_of(results: Sequence[Result]) -> list[TracePoint]:
    """What all solvers have told, in the order of time."""
    return sorted((point for result in results for point in result.trace), key=lambda point: point.seconds)


def _given_fractions(options: Options, class_indices: NDArray[np.integer[Any]], classes: Sequence[str | int], n_unlabeled: int) -> Vector | None:
    """Fractions of the classes that need no estimate, shape (n_classes,); None if they are to be estimated, or play no part."""
    if not isinstance(options, BalancedOptions):
        return None
    requested = requested_fractions(options, classes)
    if requested.fractions is not None:
        return np.array(list(requested.fractions.values()))
    if requested.source == "labeled" or not n_unlabeled:
        return np.asarray(np.bincount(class_indices, minlength=len(classes)) / len(class_indices))
    return None


class _Means(NamedTuple):
    """What a training works with."""

    threads: int | None
    max_model_bytes: int | None
    watch: Watch
    tally: Tally

    def sweeper(self, rows: SparseRows) -> Sweeper:
        """What runs solvers over these rows."""
        return Sweeper(rows, threads=self.threads, max_model_bytes=self.max_model_bytes, watch=self.watch, tally=self.tally)


class _Found(NamedTuple):
    """What solving came to."""

    results: list[Result]
    calibration: Calibration | None
    report: dict[str, Any] | None


def _chosen(
    documents: Compact,
    class_indices: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    options: AutoOptions,
    given: Vector | None,
    seed: int,
    means: _Means,
) -> _Found:
    """The solutions of what auto chooses; raises Stopped."""
    data = SelectionData.of(documents.rows, class_indices, classes, seed, means.watch, options.labels_drawn)
    with means.sweeper(data.scaled.rows) as sweeper:
        chosen = auto(sweeper, data, classes, options, given, means.watch)
    if chosen is None:
        raise Stopped
    return _Found(chosen.results, chosen.calibration, chosen.report)


def _solved(
    documents: Compact,
    class_indices: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    algorithm: str,
    options: Options,
    given: Vector | None,
    points: Points,
    seed: int,
    means: _Means,
) -> _Found:
    """The solutions of one algorithm, with the class fractions given or, if it needs them, estimated; raises Stopped before there is one."""
    fractions, report, part = _balance(documents, class_indices, classes, options, given, seed, means)

    def solve(rows: SparseRows, class_indices: NDArray[np.integer[Any]], points: Points, part: Part, prefix: str = "") -> list[Result]:
        with means.sweeper(rows) as sweeper:
            return sweeper.run(_one_vs_rest(rows, class_indices, classes, algorithm, options, fractions, points, seed, prefix), part)

    if not (isinstance(options, SolverOptions) and options.probabilities):
        return _Found(solve(documents.rows, class_indices, points, part), None, report)
    parts = [part.part(number / (N_FOLDS + 1), (number + 1) / (N_FOLDS + 1)) for number in range(N_FOLDS + 1)]
    results = solve(documents.rows, class_indices, points, parts[0])
    if stopped(results):
        return _Found(results, None, report)
    nothing: Points = [None] * len(points)  # the points to start from know the labels

    def without(fold: int, rows: SparseRows, told: NDArray[np.integer[Any]]) -> list[Result]:
        return solve(rows, told, nothing, parts[fold + 1], f"fold={fold}/")

    try:
        held_out = cross_val_scores(documents.rows, class_indices, len(points), seed, without, means.watch)
        return _Found(results, _calibration(held_out, class_indices, results, fractions, len(classes), means.watch), report)
    except Stopped:
        return _Found([replace(result, status=Status.CANCELLED) for result in results], None, report)


def _balance(
    documents: Compact,
    class_indices: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    options: Options,
    given: Vector | None,
    seed: int,
    means: _Means,
) -> tuple[Vector | None, dict[str, Any] | None, Part]:
    """Class fractions for a solver that needs them, what is to be reported of them, and the part of the work that is left."""
    if given is not None:
        return given, {"class_fractions": {str(label): float(share) for label, share in zip(classes, given, strict=True)}}, WHOLE
    if not isinstance(options, BalancedOptions):
        return None, None, WHOLE
    share = _estimation(options)
    data = SelectionData.of(documents.rows, class_indices, classes, seed, means.watch, options.labels_drawn)
    with means.sweeper(data.scaled.rows) as sweeper:
        found = estimate_fractions(sweeper, data, Part(0.0, share))
    if found is None:
        raise Stopped
    return found.fractions, found.report(classes), Part(share, 1.0)


def _calibration(
    held_out: NDArray[np.float64],
    class_indices: NDArray[np.integer[Any]],
    results: Sequence[Result],
    fractions: Vector | None,
    n_classes: int,
    watch: Watch,
) -> Calibration:
    """With the class fractions of the unlabeled documents, or without them (of algorithms that learn from labels alone) by the labels.

    Raises Stopped.
    """
    scores = np.column_stack([result.unlabeled_scores for result in results])
    if fractions is None or not len(scores):
        return fit_calibration_to_labels(held_out, class_indices, n_classes, watch)
    return fit_calibration(held_out, class_indices, scores, fractions, watch)


def _estimation(options: Options) -> float:
    """The share of the work that is the estimation of class fractions, where there is one: it is linear, whatever it is for."""
    return 0.1 if isinstance(options, KernelChoice) else 0.8


def _nothing(n_features: int, classes: Sequence[str | int], unlabeled: NDArray[np.int64]) -> Training:
    """What there is when training is stopped before it has begun: coefficients of no feature."""
    n_columns = n_problems(len(classes))
    model = LinearModel(list(classes), n_features, np.zeros(0, np.uint32), np.zeros((0, n_columns)), np.zeros(n_columns))
    return Training(model, unlabeled, np.full((len(unlabeled), n_columns), np.nan), None, np.nan, Status.CANCELLED, [], [], 0.0)


def _one_vs_rest(
    rows: SparseRows,
    class_indices: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    algorithm: str,
    options: Options,
    fractions: Vector | None,
    points: Points,
    seed: int,
    prefix: str,
) -> dict[str, Callable[[], Steps]]:
    """The solvers of all two-class problems, each made when its turn comes, by the prefix of their phases."""
    solver = load(find_algorithm(algorithm))

    def begin(positive: int, point: Vector | None) -> Steps:
        problem = Problem.of(rows, np.where(class_indices == positive, 1.0, -1.0), seed=seed)
        own = {} if fractions is None else {"positive_fraction": float(fractions[positive]), "class_fractions": None}
        return solver(problem, options.model_copy(update=own), point)

    places = zip(prefixes_of(classes), positives_of(len(classes)), points, strict=True)
    return {prefix + own: partial(begin, positive, point) for own, positive, point in places}


def _warnings(options: Options, n_unlabeled: int, results: Sequence[Result], start_ignored: bool) -> list[str]:
    warnings = []
    if start_ignored:
        warnings.append("the model to start from is of no use to this algorithm or to these classes: training started from nothing")
    if isinstance(options, BalancedOptions) and n_unlabeled == 0:
        warnings.append("there are no unlabeled documents: the model is the supervised one")
    short = sum(result.status is Status.ITERATION_LIMIT for result in results)
    if short:
        warnings.append(f"{short} of {len(results)} two-class problems ended at the iteration limit; raise max_iterations, or smooth more")
    return warnings


def warming() -> Iterator[None]:
    """Compile all that training runs, or load it from the cache, so that no job waits for it, in steps; to be done before forking."""
    for n_features in (2, 16):  # dense rows, then sparse ones
        indices = np.arange(16, dtype=np.uint32) % np.uint32(n_features)
        rows = SparseRows(np.arange(17, dtype=np.int64), indices, np.ones(16, np.float32), n_features)
        # as what is read from a store is: to Numba that is another type
        for array in rows[:3]:
            array.flags.writeable = False
        for offered in OFFERED.values():
            # an estimate is many solves: one is enough, which auto makes
            options = {"positive_fraction": "labeled"} if offered is not AUTO and issubclass(offered.options, BalancedOptions) else {}
            for class_indices in ([0, 1, *[-1] * 14], [0, 1, 2, *[-1] * 13]):
                train(rows, np.array(class_indices, np.int32), range(max(class_indices) + 1), offered.name, options, threads=1)
                yield


def warm_up() -> None:
    """All of ``warming`` at once."""
    for _ in warming():
        pass
