"""The linear family in units of the machine: time to the reference objectives, many right-hand sides, retraining, the
roofline.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.base import Timing, class_indices_of, table, timed, unit
from benchmarks.data import load, text_like, tfidf
from core.documents.rows import SparseRows
from core.engine.passes import Passes
from core.engine.requests import Product
from core.numerics.width import WIDTH
from core.problem import Problem, Result
from core.registry import find_algorithm
from core.train import Training, TrainingTask, train
from tests.core.problems import rows_of, solve
from workers.worker.warm_up import warm_up

_FRACTION = 0.3494
_MORE_LABELS = 20
_NEAR = 1024
"""features of which direction and accumulator fit the first-level cache"""


def section() -> str:
    """All tables of this module."""
    warm_up()
    return "\n".join(
        [
            to_reach(),
            "### Where a pass stands",
            roofline(),
            "### Many classes at once",
            classes(),
            "### Retraining",
            retraining(),
        ]
    )


def to_reach() -> str:
    """Units to the objectives of the reference runs."""
    data = text_like()
    one = unit(data.X)
    rows, n = rows_of(data.X), len(data.y)
    cases: list[tuple[str, str, dict[str, Any], int, int, float, float, float]] = [
        ("supervised, all labeled", "svm", {}, n, 5, 25, 15, 0.295372),
        ("TSVM, S = all", "tsvm", {"positive_fraction": _FRACTION}, 1000, 5, 930, 60, 0.385),
        ("annealing", "da", {"positive_fraction": _FRACTION}, 1000, 5, 1590, 100, 0.383),
        ("TSVM, S = 1", "tsvm", {"positive_fraction": _FRACTION, "max_switches": 1}, 1000, 1, 22600, 2500, 0.385),
    ]
    lines = []
    for name, algorithm, options, labeled, repeats, svmlin, target, bound in cases:
        problem = Problem.of(rows, data.y[:labeled].astype(float))
        result, timing = timed(_solver(algorithm, problem, options), repeats, warm_ups=min(1, repeats - 1))
        units = timing.median / one
        verdict = "reached" if units <= target and result.objective <= bound else "MISSED"
        objective = f"{result.objective:.6f} (≤ {bound})"
        lines.append(
            [
                name,
                svmlin,
                f"≤ {target}",
                f"**{units:.1f}** ± {timing.spread:.0%}",
                objective,
                f"{result.passes:.0f}",
                f"{svmlin / units:.0f}",
                verdict,
            ]
        )
    heads = [
        "100,000 × 47,000, 76 nonzeros a row",
        "SVMlin, units",
        "to reach",
        "Halfmoon, units",
        "objective",
        "passes",
        "times SVMlin",
        "",
    ]
    note = (
        f"A unit is one SciPy float64 `X @ p` plus one `X.T @ z` on the same data, here {one * 1e3:.1f} ms. "
        "Median and half range of five runs (S = 1: one), the whole of solve() on two cores."
    )
    return f"{note}\n\n{table(heads, lines)}"


def _solver(algorithm: str, problem: Problem, options: dict[str, Any]) -> Callable[[], Result]:
    parsed = find_algorithm(algorithm).options.parse(options)
    return lambda: solve(algorithm, problem, parsed)


def roofline() -> str:
    """Bytes that a pass must move against the machine's bandwidth, and the time of the pass when none of its scattered
    accesses leaves the cache.
    """
    rows = rows_of(text_like().X)
    near = SparseRows(rows.indptr, rows.indices % _NEAR, rows.values, rows.n_features)
    must = rows.n_nonzeros * 8 + rows.n_rows * 32
    lines = []
    for threads in (1, 2):
        seconds, cached, machine = _pass(rows, threads), _pass(near, threads), _streaming(threads)
        rate = must / seconds
        line = [
            threads,
            f"{seconds * 1e3:.2f} ms",
            f"{must / 1e6:.0f} MB",
            f"{rate / 1e9:.1f} GB/s",
            f"{machine / 1e9:.1f} GB/s",
        ]
        lines.append(
            [*line, f"**{rate / machine:.0%}**", f"{seconds * 1e9 / rows.n_nonzeros:.2f}", f"{cached / seconds:.0%}"]
        )
    heads = [
        "threads",
        "fused pass",
        "must move",
        "moves",
        "the machine streams",
        "share",
        "ns a nonzero",
        "all in the first-level cache",
    ]
    return table(heads, lines) + (
        "\nThe rows come from memory once a pass; the machine streams as fast as dot products by BLAS read. The pass "
        "stays behind by its work at each nonzero. The last column is the share of the time that is left when "
        f"all indices are below {_NEAR:,}, so that no access to direction or accumulator "
        "leaves the first-level cache.\n"
    )


def _pass(rows: SparseRows, threads: int) -> float:
    """Seconds of one fused pass, median."""
    rng = np.random.default_rng(0)
    request = Product(rng.standard_normal(rows.n_features + 1), rng.random(rows.n_rows), np.zeros(rows.n_rows))
    passes = Passes(rows, threads, lambda: None)
    timing = timed(lambda: passes.product(request), 15)[1]
    passes.close()
    return timing.median


def _streaming(threads: int) -> float:
    """Bytes a second that threads read from memory side by side.

    Not by NumPy's sum, which takes half as long again, nor by ``@``, which holds the GIL.
    """
    stream = np.ones(1 << 26, np.float32)
    parts = np.array_split(stream, threads)
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        return stream.nbytes / timed(lambda: list(pool.map(np.dot, parts, parts)), 7)[1].median


def classes() -> str:
    """One-vs-rest of 20 classes against one class."""
    X, y = tfidf("20news-bydate")
    rows, rng = rows_of(X), np.random.default_rng(0)
    labeled = np.sort(rng.choice(len(y), 1000, replace=False))
    lines = []
    cases = (("supervised, all labeled", "svm", np.arange(len(y)), 6), ("TSVM, 1,000 labeled", "tsvm", labeled, 8))
    for name, algorithm, chosen, most in cases:
        class_indices, names = class_indices_of(y, chosen)
        everything, together = timed(
            partial(train, TrainingTask(rows, class_indices, names, algorithm, _plain(algorithm))), 3
        )
        alone, apart = zip(*(_one_class(rows, class_indices, k, algorithm) for k in range(len(names))), strict=True)
        mean = float(np.mean([timing.median for timing in apart]))
        work = float(np.median(together.processor_seconds) / np.mean([timing.processor_seconds[0] for timing in apart]))
        far = max(
            float(np.abs(one.scores[:, 0] - everything.scores[:, k]).max(initial=0)) for k, one in enumerate(alone)
        )
        ratio = together.median / mean
        verdict = "reached" if ratio <= most else "MISSED"
        lines.append(
            [
                name,
                f"{together.median:.2f} s",
                f"{mean:.3f} s",
                f"**{ratio:.1f}**",
                f"{work:.1f}",
                f"≤ {most}",
                verdict,
                f"{far:.0e}",
            ]
        )
    heads = [
        "20news-bydate, 18,846 × " + f"{rows.n_features:,}",
        "20 classes",
        "one class, mean",
        "ratio",
        "of processor seconds",
    ]
    return table([*heads, "to reach", "", "scores differ by"], lines) + _together(rows)


def _together(rows: SparseRows) -> str:
    """The cost of a right-hand side in a block, and so how far sharing passes can go."""
    rng = np.random.default_rng(0)
    requests = [
        Product(rng.standard_normal(rows.n_features + 1), rng.random(rows.n_rows), np.zeros(rows.n_rows))
        for _ in range(WIDTH)
    ]
    passes = Passes(rows, None, lambda: None)
    alone, together = (timed(partial(passes.products, asked), 15)[1].median for asked in (requests[:1], requests))
    passes.close()
    return (
        f"\nA pass over all rows takes {alone * 1e3:.1f} ms with one right-hand side and {together * 1e3:.1f} "
        f"ms with {WIDTH}: "
        f"{together / WIDTH / alone:.2f} of a pass each. Two things keep 20 classes above 20 of those shares. A class "
        "alone reads its own active rows, a block those of all its classes. And line searches, switching and vectors "
        "of features are done for each class.\n"
    )


def _plain(algorithm: str) -> dict[str, Any]:
    """Options by which nothing is estimated, so that the solver alone is timed."""
    return {} if algorithm == "svm" else {"positive_fraction": "labeled"}


def _one_class(rows: SparseRows, class_indices: NDArray[np.int32], k: int, algorithm: str) -> tuple[Training, Timing]:
    own = np.where(class_indices < 0, -1, class_indices == k).astype(np.int32)
    return timed(lambda: train(TrainingTask(rows, own, ["rest", "class"], algorithm, _plain(algorithm))), 1, warm_ups=0)


def retraining() -> str:
    """Passes after 20 more labels, from the last model against from nothing."""
    lines = []
    for name, X, y, labeled, more, fraction in _relabelings():
        rows = rows_of(X)
        for algorithm in ("tsvm", "da"):
            options = {"positive_fraction": fraction}
            first = train(TrainingTask(rows, *class_indices_of(y, labeled), algorithm, options))
            after = class_indices_of(y, np.union1d(labeled, more))
            cold = train(TrainingTask(rows, *after, algorithm, options))
            warm = train(TrainingTask(rows, *after, algorithm, options, start=first.model))
            share = warm.passes / cold.passes
            line = [
                name,
                algorithm,
                f"{cold.passes:.0f}",
                f"{warm.passes:.0f}",
                f"**{share:.2f}**",
                "reached" if share <= 1 / 3 else "MISSED",
            ]
            line += [f"{cold.objective:.5f}", f"{warm.objective:.5f}", f"{warm.objective / cold.objective - 1:+.2%}"]
            lines.append(line)
    return table(
        ["20 more labels", "", "passes, cold", "warm", "share", "≤ 1/3", "J, cold", "warm", "difference"], lines
    )


def _relabelings() -> list[tuple[str, Any, NDArray[Any], NDArray[np.int64], NDArray[np.int64], float]]:
    text, big = load("ssl-text"), text_like()
    example = load("svmlin-example")
    rows = example.splits["train"]
    place = {name: np.flatnonzero(np.isin(rows, example.splits[name])) for name in ("train_labeled", "train_unlabeled")}
    return [
        *(
            (
                f"ssl-text, split {k}",
                text.X,
                text.y,
                text.splits["labeled100"][k],
                text.splits["unlabeled100"][k][:_MORE_LABELS],
                0.5,
            )
            for k in range(3)
        ),
        (
            "svmlin-example",
            example.X[rows],
            example.y[rows],
            place["train_labeled"],
            place["train_unlabeled"][:_MORE_LABELS],
            0.5,
        ),
        ("text-like", big.X, big.y, np.arange(1000), np.arange(1000, 1000 + _MORE_LABELS), _FRACTION),
    ]


if __name__ == "__main__":
    print(section())
