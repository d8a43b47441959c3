"""``algorithm: "auto"``: method, λ and class fractions from the documents and their few labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.calibration import Calibration, calibrated, calibrated_to_labels
from core.options import AutoOptions, SvmOptions, TsvmOptions
from core.progress import Observer, Part
from core.result import Linear, Result
from core.selection import evidence
from core.selection.choice import Comparison, compared, right
from core.selection.estimate import LAMBDA, Estimate, estimate, stopped
from core.selection.folds import N_FOLDS
from core.selection.path import Supervised
from core.selection.study import Study
from core.semisup.tsvm import tsvm
from core.supervised.svm import svm
from core.sweeps import Steps, Sweeper

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1)
"""of the supervised model, on rows of mean square norm 1"""
_TUNED, _ESTIMATED = 0.05, 0.85
"""share of the work that is done when λ of the supervised model is found, and when the fractions are"""


@dataclass(frozen=True)
class Chosen:
    """What auto ends with."""

    results: list[Result]
    """of the method chosen, one a two-class problem, on the features as they came"""
    calibration: Calibration
    report: dict[str, Any]
    """what was tried, what it showed, what was chosen and why, as JSON"""


class Candidate(NamedTuple):
    """A way to learn that may be chosen."""

    algorithm: str
    ridge: float
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions that did not know their labels; NaN where none was left out"""


def choose(
    study: Study,
    classes: Sequence[str | int],
    options: AutoOptions,
    given: NDArray[np.float64] | None,
    observer: Observer | None,
    threads: int | None,
) -> Chosen | None:
    """The model that the evidence is for; None if stopped before there was one. ``given`` are the fractions of the classes if they are known.

    The supervised SVM with λ by cross-validation is what the transductive SVM must not be worse than on labels left out; then that one is
    taken, with the fractions that core.selection.estimate finds.
    """
    n_unlabeled = study.problems[0].n_unlabeled
    with Sweeper(study.prepared.rows, threads=threads, observer=observer) as sweeper:
        supervised = tuned(sweeper, study, Part(0.0, _TUNED if n_unlabeled else _ESTIMATED))
        if supervised is None:
            return None
        best, found, verdict, why = supervised, None, None, "there are no unlabeled documents"
        if n_unlabeled:
            found = estimate(sweeper, study, Part(_TUNED, _ESTIMATED), given)
            if found is None:
                return None
            transductive = Candidate("tsvm", LAMBDA, found.held_out)
            verdict, why = judged(study, supervised, transductive)
            best = supervised if verdict.against_second else transductive
        results = sweeper.run(dict(zip(study.prefixes, _solvers(study, best, options, found), strict=True)), Part(_ESTIMATED, 1.0))
    if stopped(results):
        return None
    scores = np.column_stack([result.unlabeled_scores for result in results])
    if found is None:
        calibration = calibrated_to_labels(best.held_out, study.codes, study.n_classes)
    else:
        calibration = calibrated(best.held_out, study.codes, scores, found.fractions)
    report = _report(study, classes, best, supervised, found, verdict, why)
    return Chosen([_on_raw_features(result, study) for result in results], calibration, report)


def tuned(sweeper: Sweeper, study: Study, part: Part) -> Candidate | None:
    """The supervised SVM with the λ that makes the labels left out likeliest, the larger of equals; None if stopped."""
    runs = {(ridge, column, fold): Supervised() for ridge in LAMBDAS for column in range(len(study.problems)) for fold in range(N_FOLDS)}
    steps: dict[str, Callable[[], Steps]] = {
        f"{study.prefixes[column]}svm/lambda={ridge:g}/fold={fold}/": partial(
            run.steps, study.problems[column], study.folds == fold, SvmOptions(lambda_=ridge)
        )
        for (ridge, column, fold), run in runs.items()
    }
    if stopped(sweeper.run(steps, part)):
        return None
    candidates = []
    for ridge in LAMBDAS:
        scores = np.full((len(study.codes), len(study.problems)), np.nan)
        for column in range(len(study.problems)):
            for fold in range(N_FOLDS):
                left_out = study.folds == fold
                scores[left_out, column] = runs[ridge, column, fold].labeled[left_out]
        candidates.append(Candidate("svm", ridge, scores))
    return max(candidates, key=lambda candidate: (likelihood(study, candidate), candidate.ridge))


def likelihood(study: Study, candidate: Candidate) -> float:
    """Log-likelihood of the labels left out, summed over the two-class problems that leave out labels of both sides."""
    known, total = study.left_out, 0.0
    for problem, scores in zip(study.problems, candidate.held_out.T, strict=True):
        if len(np.unique(problem.y[known])) == 2:
            total += float(evidence.from_held_out(scores[None, known], problem.y[known])[0])
    return total


def judged(study: Study, supervised: Candidate, transductive: Candidate) -> tuple[Comparison, str]:
    """How the two compare on the labels left out, as numbers and as a sentence."""
    known = study.left_out
    codes = study.codes[known]
    likelihoods = likelihood(study, supervised), likelihood(study, transductive)
    verdict = compared(likelihoods, right(supervised.held_out[known], codes), right(transductive.held_out[known], codes))
    if len(np.unique(codes)) < 2:
        return verdict, f"too few labels to judge by: {len(codes)} can be left out, and not of two classes; the unlabeled documents are trusted"
    why = (
        f"{len(codes)} labels left out in turn have a log-likelihood of {verdict.second:.1f} by the transductive model (which alone gets "
        f"{verdict.only_second} right) and of {verdict.first:.1f} by the supervised one (which alone gets {verdict.only_first} right): "
    )
    return verdict, why + ("the unlabeled documents seem to do harm" if verdict.against_second else "nothing speaks against the unlabeled documents")


def _solvers(study: Study, best: Candidate, options: AutoOptions, found: Estimate | None) -> list[Callable[[], Steps]]:
    if best.algorithm == "svm" or found is None:
        return [partial(svm, problem, SvmOptions(lambda_=best.ridge, tolerance=options.tolerance)) for problem in study.problems]
    return [
        partial(tsvm, problem, TsvmOptions(lambda_=best.ridge, tolerance=options.tolerance, positive_fraction=float(fraction)))
        for problem, fraction in zip(study.problems, found.fractions[study.positives], strict=True)
    ]


def _on_raw_features(result: Result, study: Study) -> Result:
    assert isinstance(result.decision, Linear)
    return replace(result, decision=Linear(result.decision.coefficients * study.prepared.scales, result.decision.intercept))


def _report(
    study: Study,
    classes: Sequence[str | int],
    best: Candidate,
    supervised: Candidate,
    found: Estimate | None,
    verdict: Comparison | None,
    why: str,
) -> dict[str, Any]:
    tried: list[dict[str, Any]] = [{"algorithm": "svm", "lambda": list(LAMBDAS), "best_lambda": supervised.ridge}]
    if found is not None:
        positives = [str(classes[positive]) for positive in study.positives]
        tried.append({"algorithm": "tsvm", "lambda": LAMBDA, "lambda_u": 1.0, "fractions": dict(zip(positives, found.grids, strict=True))})
    held_out = verdict and {
        "labels": int(study.left_out.sum()),
        "folds": N_FOLDS,
        "svm": {"log_likelihood": verdict.first, "alone_right": verdict.only_first},
        "tsvm": {"log_likelihood": verdict.second, "alone_right": verdict.only_second},
    }
    return {
        "chosen": {"algorithm": best.algorithm, "lambda": best.ridge, "why": why},
        "tried": tried,
        "held_out": held_out,
        "features": "each divided by its root mean square" if study.prepared.equalised else "all by one scale",
        **({} if found is None else found.told(classes)),
    }
