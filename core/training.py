"""From labeled and unlabeled documents to a model: columns, one-vs-rest, results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.assembly import model_of
from core.columns import Compact, compact
from core.linear_model import LinearModel
from core.model import Model
from core.options import BalancedOptions, Options
from core.problem import Problem
from core.progress import Observer, TracePoint
from core.registry import ALGORITHMS
from core.registry import algorithm as find_algorithm
from core.requests import check_options, positive_fractions
from core.result import Result, Status
from core.rows import SparseRows
from core.starting import Points, starting_points
from core.sweeps import Steps, Sweeper, Vector
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
    """over the nonzeros, summed over the two-class problems"""


def train(
    rows: SparseRows,
    codes: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    algorithm: str,
    options: Mapping[str, Any],
    *,
    seed: int = 0,
    start: Model | None = None,
    observer: Observer | None = None,
    threads: int | None = None,
    max_model_bytes: int | None = None,
) -> Training:
    """Train a model on documents of which some are labeled.

    ``codes`` of shape (n_rows,) hold each document's position in ``classes`` (sorted), or -1 where it is unlabeled. Two classes make one problem with
    the second as the positive one; more make one-vs-rest, a problem a class, run side by side. ``seed`` decides the random numbers of
    algorithms that draw any. Classes of which no document is labeled are left out. From ``start``, the model of
    nearly the same documents, as after some more labels, training takes a fraction of the passes; classes that it does not have start from
    nothing. A stop asked for by ``observer`` returns the best iterates with status ``cancelled``.
    Raises UnknownAlgorithm, InvalidOption, InvalidDocuments, and ModelTooLarge as soon as a solver knows that the documents that the model keeps and
    their weights will take more than ``max_model_bytes``.
    """
    labeled, unlabeled = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    present, codes = np.unique(codes[labeled], return_inverse=True)
    classes = [classes[position] for position in present]
    parsed = check_options(algorithm, options, classes, rows.n_rows)
    order, watch = np.concatenate([labeled, unlabeled]), Watch(observer)
    points: Points = [None] * (1 if len(classes) == 2 else len(classes))
    try:
        documents = compact(rows, order, watch)
        if start is not None:
            points = starting_points(start, find_algorithm(algorithm), rows, order, documents.features, classes, watch)
    except Stopped:
        return _nothing(rows.n_features, classes, unlabeled)
    with Sweeper(documents.rows, threads=threads, observer=observer, max_model_bytes=max_model_bytes) as sweeper:
        results = sweeper.run(_one_vs_rest(documents, codes, classes, algorithm, parsed, points, seed))
    return Training(
        model=model_of(documents, rows.n_features, classes, [result.decision for result in results]),
        unlabeled=unlabeled,
        scores=np.column_stack([result.unlabeled_scores for result in results]),
        probabilities=None,
        objective=sum(result.objective for result in results),
        status=reduce(Status.worse, (result.status for result in results)),
        warnings=_warnings(parsed, len(unlabeled), results, start is not None and all(point is None for point in points)),
        trace=sorted((point for result in results for point in result.trace), key=lambda point: point.seconds),
        passes=sum(result.passes for result in results),
    )


def _nothing(n_features: int, classes: Sequence[str | int], unlabeled: NDArray[np.int64]) -> Training:
    """What there is when training is stopped before it has begun: coefficients of no feature."""
    n_columns = 1 if len(classes) == 2 else len(classes)
    model = LinearModel(list(classes), n_features, np.zeros(0, np.uint32), np.zeros((0, n_columns)), np.zeros(n_columns))
    return Training(model, unlabeled, np.full((len(unlabeled), n_columns), np.nan), None, np.nan, Status.CANCELLED, [], [], 0.0)


def _one_vs_rest(
    documents: Compact,
    codes: NDArray[np.integer[Any]],
    classes: Sequence[str | int],
    algorithm: str,
    options: Options,
    points: Points,
    seed: int,
) -> dict[str, Callable[[], Steps]]:
    """The solvers of all two-class problems, each made when its turn comes, by the prefix of their phases."""
    solver = find_algorithm(algorithm).load()

    def begin(positive: int, fraction: float | None, point: Vector | None) -> Steps:
        problem = Problem.of(documents.rows, np.where(codes == positive, 1.0, -1.0), seed=seed)
        own = options.model_copy(update={"positive_fraction": fraction, "class_fractions": None}) if fraction is not None else options
        return solver(problem, own, point)

    positives = [1] if len(classes) == 2 else range(len(classes))
    return {
        f"class={classes[positive]}/" if len(classes) > 2 else "": partial(begin, positive, fraction, point)
        for positive, fraction, point in zip(positives, positive_fractions(options, classes), points, strict=True)
    }


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


def warm_up() -> None:
    """Compile all that training runs, or load it from the cache, so that no job waits for it; call it before forking."""
    for n_features in (2, 16):  # dense rows, then sparse ones
        indices = np.arange(16, dtype=np.uint32) % np.uint32(n_features)
        rows = SparseRows(np.arange(17, dtype=np.int64), indices, np.ones(16, np.float32), n_features)
        for name in ALGORITHMS:
            train(rows, np.array([0, 1, *[-1] * 14], np.int32), [0, 1], name, {}, threads=1)
            train(rows, np.array([0, 1, 2, *[-1] * 13], np.int32), [0, 1, 2], name, {}, threads=1)
