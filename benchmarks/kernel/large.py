"""Many rows: the hinge loss on Adult beside scikit-learn, reviews with unlabeled ones by the thousand, digits in ten classes."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import SVC

from benchmarks.base import Figure, rows_of, table
from benchmarks.kernel.fits import fit_draw, fit_split
from benchmarks.kernel.plots import Panel, draw, slope
from benchmarks.kernel.sets import Draw, Split, adult, mnist, reviews
from benchmarks.kernel.small import figures_table, told
from core.train import Training

ADULT = {"C": 1.0, "gamma": 0.05, "tolerance": 1e-3}
"""near Platt's (C = 1, Gaussian of variance 10)"""
CACHE_MIB = 1000
REVIEWS = {"C": 2.597, "gamma": "median", "s": -0.2}
UNLABELED = (500, 1000, 2000, 4000, 8000, 12_500)
MOST_REVIEW_SECONDS = 60.0
PAPER_REVIEW_SECONDS = 18 * 60.0
MNIST = {"C": 10.0, "gamma": 0.0128}
"""of the paper's Table 1.5, as is what its 10,000 unlabeled digits have"""
MNIST_UNLABELED: dict[str, float] = {"s": -0.1, "C_u": 0.5}
MOST_MNIST_SECONDS = 120.0


def adult_beside_scikit_learn() -> str:
    """The same problem, tolerance and cache, one after the other."""
    split = adult(0)
    start = time.perf_counter()
    rival = SVC(C=ADULT["C"], gamma=ADULT["gamma"], tol=ADULT["tolerance"], cache_size=CACHE_MIB).fit(split.X, split.y)
    seconds = time.perf_counter() - start
    given = {**ADULT, "cache_bytes": CACHE_MIB << 20}
    hinge = fit_split(split, "kernel_svm", given)
    zero = fit_split(split, "ramp_svm", {**given, "s": 0.0})
    subset = fit_split(split, "ramp_svm", {**given, "s": 0.0, "start": "subset"})
    theirs = hinge_objective(split, split.X[rival.support_], rival.dual_coef_.toarray()[0], float(rival.intercept_[0]))
    ours = _objective_of(split, hinge.training)
    figures = [
        Figure("hinge loss: seconds", hinge.seconds, seconds, "s", rival=seconds),
        Figure("hinge loss: objective less scikit-learn's, relative", ours / theirs - 1, 1e-3, ""),
        Figure("ramp loss from a subset: seconds", subset.seconds, seconds / 2, "s", rival=seconds),
        Figure("ramp loss from a subset: objective over that from zero, relative", subset.training.objective / zero.training.objective - 1, 1e-2, ""),
    ]
    lines: list[list[object]] = [
        ["scikit-learn SVC", f"{seconds:.1f}", len(rival.support_), f"{1 - rival.score(split.X_test, split.y_test):.4f}", f"{theirs:.2f}"]
    ]
    for name, fit in (("hinge", hinge), ("ramp, s = 0, from zero", zero), ("ramp, s = 0, from a subset", subset)):
        lines.append([name, f"{fit.seconds:.1f}", fit.n_support, f"{fit.error:.4f}", f"{fit.training.objective:.2f}"])
    note = f"32,561 rows, {told(ADULT)}, cache {CACHE_MIB} MiB; scikit-learn has one thread, Halfmoon one a core for kernel rows. Objectives "
    note += f"of both hinge solutions by one float64 sum: {ours:.3f}, {theirs:.3f}."
    return f"{note}\n\n{table(['', 'seconds', 'support vectors', 'test error', 'objective'], lines)}\n{figures_table(figures, 'scikit-learn')}"


def _objective_of(split: Split, training: Training) -> float:
    """The objective of a stored model of one column."""
    arrays, meta = training.model.to_arrays()
    columns = arrays["features"][arrays["indices"]].astype(np.int64)
    support = sp.csr_matrix((arrays["values"], columns, arrays["indptr"]), shape=(len(arrays["weights"]), meta["n_features"]))
    return hinge_objective(split, support, arrays["weights"][:, 0], float(arrays["intercepts"][0]))


def hinge_objective(split: Split, support: sp.csr_matrix, weights: NDArray[Any], b: float) -> float:
    """½ |w|² + C Σ max(0, 1 − y f(x)) in float64, block by block."""
    kept = support.toarray().astype(np.float64)

    def expanded(rows: sp.csr_matrix) -> NDArray[np.float64]:
        blocks = (rows[start : start + 1000].toarray().astype(np.float64) for start in range(0, rows.shape[0], 1000))
        return np.concatenate([_rbf(block, kept) @ weights for block in blocks])

    losses = np.maximum(0, 1 - split.y * (expanded(split.X) + b))
    return float(0.5 * weights @ expanded(support) + ADULT["C"] * losses.sum())


def _rbf(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.asarray(np.exp(-ADULT["gamma"] * np.maximum(squares, 0)), np.float64)


def documents(target: Path) -> str:
    """Seconds against the number of unlabeled reviews, drawn log-log (Figure 1.9)."""
    X, y = reviews()
    labeled = np.arange(1000)
    hinge = fit_draw(Draw(rows_of(X), y, labeled), "kernel_svm", {key: REVIEWS[key] for key in ("C", "gamma")})
    fits = [fit_draw(Draw(rows_of(X[: 1000 + n]), y[: 1000 + n], labeled), "cccp_tsvm", REVIEWS) for n in UNLABELED]
    seconds = [fit.seconds for fit in fits]
    power = slope(UNLABELED[-3:], seconds[-3:])
    parabola = [seconds[-1] * (n / UNLABELED[-1]) ** 2 for n in UNLABELED]
    curves = {"Halfmoon": (UNLABELED, seconds), "quadratic through the last point": (UNLABELED, parabola)}
    draw([Panel("1,000 labeled reviews", curves, "unlabeled reviews", "seconds", logarithmic=True)], target)
    figures = [
        Figure("1,000 + 12,500 reviews, RBF on TF-IDF", seconds[-1], MOST_REVIEW_SECONDS, "s", rival=PAPER_REVIEW_SECONDS),
        Figure("power of U in the time of the three largest", power, 2.0, "", rival=2.0),
    ]
    lines = [[n, f"{fit.seconds:.2f}", fit.n_support, f"{fit.error:.4f}"] for n, fit in zip(UNLABELED, fits, strict=True)]
    note = f"`imdb-30k`, {X.shape[1]:,} words, {told(REVIEWS)}, U C* = L C; the hinge-loss SVM on the labeled ones errs by {hinge.error:.4f}."
    shown = table(["unlabeled", "seconds", "support vectors", "error on them"], lines)
    return f"{note}\n\n![Figure 1.9]({target.name})\n\n{shown}\n{figures_table(figures, 'paper')}"


def digits() -> str:
    """Ten classes, one against the rest."""
    images = mnist()
    hinge, transductive = fit_draw(images, "kernel_svm", MNIST), fit_draw(images, "cccp_tsvm", {**MNIST, **MNIST_UNLABELED})
    figures = [
        Figure("mnist-t10k, ten classes, 1,000 + 9,000: seconds", transductive.seconds, MOST_MNIST_SECONDS, "s"),
        Figure("its error", transductive.error, hinge.error, "", rival=hinge.error),
    ]
    note = f"{told(MNIST)}, for the unlabeled {told(MNIST_UNLABELED)}, as in the paper (there 7.77 % and 5.65 %, of the whole test part)."
    lines = [[name, f"{100 * fit.error:.2f} %", fit.n_support, f"{fit.seconds:.1f}"] for name, fit in (("SVM", hinge), ("CCCP-TSVM", transductive))]
    return f"{note}\n\n{table(['', 'error', 'support vectors', 'seconds'], lines)}\n{figures_table(figures, 'SVM')}"
