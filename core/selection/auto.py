"""``algorithm: "auto"``: method, λ and class fractions from the documents and their few labels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.engine.runner import Steps, Sweeper
from core.options.auto import AutoOptions
from core.options.linear import SvmOptions, TsvmOptions
from core.problem.result import Linear, Result
from core.progress import Checkpoint, Part
from core.selection import log_evidence
from core.selection.class_fractions import LAMBDA, FractionEstimate, combine_evidence, estimate_fractions
from core.selection.comparison import hits, likeliest
from core.selection.data import SelectionData
from core.selection.eligibility import label_spreading_applies, naive_bayes_applies
from core.selection.fraction_path import SupervisedFit
from core.selection.label_spreading import NEIGHBOURS, LabelSpreading
from core.selection.naive_bayes import NaiveBayes
from core.selection.posterior import refine_grid
from core.validation.calibration import Calibration, fit_calibration, fit_calibration_to_labels
from core.validation.folds import N_FOLDS

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1)
"""of the supervised model, on rows of mean square norm 1"""
_TUNED, _ESTIMATED, _COMPARED = 0.05, 0.75, 0.85
"""share of the work that is done when λ of the supervised model is found, when the fractions are, and when all that may be chosen is known"""
_SCALES = 1e12
"""of the features, this or its inverse, up to which the distances of rows as they came are within float32 with digits to spare"""
_NAMES = {
    "svm": "the supervised model",
    "tsvm": "the transductive one",
    "graph": "labels spread among neighbours",
    "mixture": "a mixture of the classes",
}


class Selection(NamedTuple):
    """What auto ends with."""

    results: list[Result]
    """solutions of the selected method on the features as they came, one a two-class problem; if stopped, the best iterates"""
    calibrate: Callable[[], Calibration]
    """calibration by the held-out scores; raises Stopped"""
    report: dict[str, Any]
    """what was tried, what it showed, what was selected and why, as JSON"""


class Candidate(NamedTuple):
    """A way to learn that may be chosen."""

    algorithm: str
    ridge: float | None
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions that did not know their labels; NaN where none was left out"""
    found: FractionEstimate | None = None
    """the fractions of the classes that it goes by; None if it knows of none"""
    label_spreading: LabelSpreading | None = None
    naive_bayes: NaiveBayes | None = None

    @property
    def margins(self) -> NDArray[np.float64]:
        """shape (n_labeled, n_problems): the held-out scores as they judge, each for a class against all others."""
        return self.held_out if self.naive_bayes is None else self.naive_bayes.margins


def auto(
    sweeper: Sweeper,
    data: SelectionData,
    classes: Sequence[str | int],
    options: AutoOptions,
    given: NDArray[np.float64] | None,
    checkpoint: Checkpoint,
) -> Selection:
    """The model that the evidence is for; raises Stopped before it is known which.

    ``given`` are the fractions of the classes if they are known; ``checkpoint`` is called between parts of work that is no solver's, and may raise
    Stopped.

    The supervised SVM with λ by cross-validation is what the transductive SVM must not be worse than on labels left out; then that one is
    taken, with the fractions that core.selection.class_fractions finds. Where neighbours mean something, labels that spread among them, and where
    documents can be draws of terms, a mixture of the classes, are taken if those left out are likelier by them than by all others; the fractions
    are then those that they find. Raises ModelTooLarge, too.
    """
    n_unlabeled = data.problems[0].n_unlabeled
    supervised = grid_search(sweeper, data, Part(0.0, _TUNED if n_unlabeled else _COMPARED))
    candidates, found = [supervised], None
    if n_unlabeled:
        found = estimate_fractions(sweeper, data, Part(_TUNED, _ESTIMATED), given)
        candidates += [Candidate("tsvm", LAMBDA, found.held_out, found), *_label_spreading(data, found, given, checkpoint)]
        if _naive_bayes_applies(data):
            naive_bayes = NaiveBayes.of(sweeper, data, found.grids, given, Part(_ESTIMATED, _COMPARED), checkpoint)
            candidates.append(Candidate("mixture", None, naive_bayes.estimate.held_out, naive_bayes.estimate, naive_bayes=naive_bayes))
    best, why, held_out = select(data, candidates)
    found = best.found or found
    results = sweeper.run(dict(zip(data.prefixes, _solvers(data, best, found, options), strict=True)), Part(_COMPARED, 1.0))
    report = {
        "chosen": {"algorithm": best.algorithm, "lambda": best.ridge, "why": why},
        "tried": [_tried_report(data, classes, candidate) for candidate in candidates],
        "held_out": held_out,
        "features": "each divided by its root mean square" if data.scaled.equalised else "all by one scale",
        **({} if found is None else found.report(classes)),
    }
    calibrate = partial(_calibration, data, best.held_out, results, found, checkpoint)
    return Selection([_on_original_features(result, data) for result in results], calibrate, report)


def grid_search(sweeper: Sweeper, data: SelectionData, part: Part) -> Candidate:
    """The supervised SVM with the λ that makes the labels left out likeliest, the larger of equals; raises Stopped."""
    runs = {(ridge, column, fold): SupervisedFit() for ridge in LAMBDAS for column in range(len(data.problems)) for fold in range(N_FOLDS)}
    steps: dict[str, Callable[[], Steps]] = {
        f"{data.prefixes[column]}svm/lambda={ridge:g}/fold={fold}/": partial(
            run.steps, data.problems[column], data.folds == fold, SvmOptions(lambda_=ridge)
        )
        for (ridge, column, fold), run in runs.items()
    }
    sweeper.run(steps, part)
    candidates = []
    for ridge in LAMBDAS:
        scores = np.full((len(data.class_indices), len(data.problems)), np.nan)
        for column in range(len(data.problems)):
            for fold in range(N_FOLDS):
                left_out = data.folds == fold
                scores[left_out, column] = runs[ridge, column, fold].labeled[left_out]
        candidates.append(Candidate("svm", ridge, scores))
    return max(candidates, key=lambda candidate: (np.nan_to_num(held_out_log_likelihood(data, candidate), nan=-np.inf), candidate.ridge))


def held_out_log_likelihood(data: SelectionData, candidate: Candidate) -> float:
    """Log-likelihood of the labels left out, summed over the two-class problems that leave out labels of both sides."""
    known, total = data.left_out, 0.0
    for problem, scores in zip(data.problems, candidate.margins.T, strict=True):
        if len(np.unique(problem.y[known])) == 2:
            total += float(log_evidence.from_held_out(scores[None, known], problem.y[known])[0])
    return total


def select(data: SelectionData, candidates: Sequence[Candidate]) -> tuple[Candidate, str, dict[str, Any] | None]:
    """The candidate that the labels left out speak for, why, and how likely they are by each, for a report; the supervised one comes first."""
    known = data.left_out
    class_indices = data.class_indices[known]
    if len(candidates) == 1:
        return candidates[0], "there are no unlabeled documents", None
    likelihoods = [held_out_log_likelihood(data, candidate) for candidate in candidates]
    weighed = _at_priors(data, candidates)
    best = likeliest(likelihoods)
    doubted = candidates[best].naive_bayes is not None and likeliest(weighed) != best
    best = likeliest(likelihoods[:best]) if doubted else best
    hit = [hits(candidate.margins[known], class_indices) for candidate in candidates]
    told = {"labels": len(class_indices), "folds": N_FOLDS} | {
        candidate.algorithm: {"log_likelihood": each, "log_likelihood_at_shares": other, "right": int(np.count_nonzero(hits))}
        for candidate, each, other, hits in zip(candidates, likelihoods, weighed, hit, strict=True)
    }
    if len(np.unique(class_indices)) < 2:
        why = f"too few labels to judge by: {len(class_indices)} can be left out, and not of two classes; the unlabeled documents are trusted"
        return candidates[best], why, told
    by = ", ".join(
        f"{each:.1f} by {_NAMES[candidate.algorithm]} ({np.count_nonzero(hits)} right)"
        for candidate, each, hits in zip(candidates, likelihoods, hit, strict=True)
    )
    verdict = "nothing speaks against the unlabeled documents" if best else "the unlabeled documents seem to do harm"
    doubt = "; the mixture has the largest only where all classes weigh the same" if doubted else ""
    return candidates[best], f"{len(class_indices)} labels left out in turn have a log-likelihood of {by}: {verdict}{doubt}", told


def _at_priors(data: SelectionData, candidates: Sequence[Candidate]) -> list[float]:
    """Log-likelihoods of the labels left out, where classes weigh what the candidates find their fractions to be on average.

    A mixture must do well by this measure, too: its classes bid for documents with no margin between them, and measured on texts of some classes that
    are not of one size it wins on the small ones what it loses on the large.
    """
    known = data.left_out
    fractions = np.mean([candidate.found.fractions for candidate in candidates if candidate.found is not None], axis=0)
    return [log_evidence.from_held_out_at_priors(candidate.margins[known], data.class_indices[known], fractions) for candidate in candidates]


def _label_spreading(data: SelectionData, found: FractionEstimate, given: NDArray[np.float64] | None, checkpoint: Checkpoint) -> list[Candidate]:
    """Labels spread among neighbours, if that is offered for such rows: the same fractions tried, and others found."""
    rows, scale = data.scaled.rows, float(data.scaled.scales.max(initial=0.0))
    offered = label_spreading_applies(rows.n_rows, rows.n_features, rows.n_nonzeros) and not data.scaled.equalised
    if not offered or not 1 / _SCALES < scale < _SCALES:
        return []
    spreading = LabelSpreading(data, checkpoint)
    spread = combine_evidence(data, spreading.paths([refine_grid(np.array(grid)) for grid in found.grids]), spreading.predicted, given)
    return [Candidate("graph", None, spread.held_out, spread, spreading)]


def _naive_bayes_applies(data: SelectionData) -> bool:
    """Whether documents can be taken for draws of terms."""
    rows = data.scaled.rows
    offered = naive_bayes_applies(rows.n_rows, rows.n_features, rows.n_nonzeros, data.n_classes) and not data.scaled.equalised
    return offered and float(rows.values.min(initial=0.0)) >= 0


def _calibration(
    data: SelectionData, held_out: NDArray[np.float64], results: Sequence[Result], found: FractionEstimate | None, checkpoint: Checkpoint
) -> Calibration:
    """Fitted to the class fractions of the unlabeled documents or, where there are none, to those of the labels; raises Stopped."""
    if found is None:
        return fit_calibration_to_labels(held_out, data.class_indices, data.n_classes, checkpoint)
    scores = np.column_stack([result.unlabeled_scores for result in results])
    return fit_calibration(held_out, data.class_indices, scores, found.fractions, checkpoint)


def _solvers(data: SelectionData, best: Candidate, found: FractionEstimate | None, options: AutoOptions) -> list[Callable[[], Steps]]:
    if found is None or best.algorithm == "svm":
        assert best.ridge is not None
        return [partial(svm, problem, SvmOptions(lambda_=best.ridge, tolerance=options.tolerance)) for problem in data.problems]
    fractions = [float(fraction) for fraction in found.fractions[data.positives]]
    if best.naive_bayes is not None:
        intercepts = best.naive_bayes.intercepts(found.fractions)
        return [partial(best.naive_bayes.steps, positive, intercepts) for positive in data.positives]
    if best.label_spreading is not None:
        return [partial(best.label_spreading.steps, column, fraction) for column, fraction in enumerate(fractions)]
    return [
        partial(tsvm, problem, TsvmOptions(lambda_=LAMBDA, tolerance=options.tolerance, positive_fraction=fraction))
        for problem, fraction in zip(data.problems, fractions, strict=True)
    ]


def _on_original_features(result: Result, data: SelectionData) -> Result:
    scales = data.scaled.scales
    if isinstance(result.decision, Linear):
        return replace(result, decision=Linear(result.decision.coefficients * scales, result.decision.intercept))
    kernel = result.decision.kernel  # of neighbours, which are looked for only where all features have one scale
    return replace(result, decision=result.decision._replace(kernel=kernel._replace(gamma=kernel.gamma * float(scales.max(initial=0.0)) ** 2)))


def _tried_report(data: SelectionData, classes: Sequence[str | int], candidate: Candidate) -> dict[str, Any]:
    """For the report."""
    if candidate.found is None:
        return {"algorithm": candidate.algorithm, "lambda": list(LAMBDAS), "best_lambda": candidate.ridge}
    own: dict[str, Any] = {"lambda": candidate.ridge, "lambda_u": 1.0} if candidate.ridge is not None else {}
    own |= {"neighbours": NEIGHBOURS} if candidate.label_spreading else {}
    grids = zip([str(classes[positive]) for positive in data.positives], candidate.found.grids, strict=True)
    return {"algorithm": candidate.algorithm, **own, "fractions": dict(grids)}
