"""``algorithm: "auto"``: model selection by cross-validation. Method, λ and class fractions are found from the documents and their labels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.documents.rows import SparseRows
from core.engine.runner import Steps, Sweeper
from core.options.auto import AutoOptions
from core.options.linear import SvmOptions, TsvmOptions
from core.problem.result import Linear, Result, ensure_complete
from core.progress import Checkpoint, Part
from core.selection.class_fractions import LAMBDA, FractionEstimate, combine_evidence, estimate_fractions
from core.selection.comparison import Judgement, best_of, judge
from core.selection.data import SelectionData
from core.selection.eligibility import label_spreading_applies, naive_bayes_applies
from core.selection.fraction_path import SupervisedFit, held_out_scores
from core.selection.frequent_features import with_frequent_features
from core.selection.label_spreading import NEIGHBOURS, LabelSpreading
from core.selection.naive_bayes import NaiveBayes
from core.selection.posterior import refine_grid
from core.selection.stack import POOLED, Member, stack, stack_weights, sum_of, weights_of
from core.validation.calibration import SLOPE, Calibration, calibration_at
from core.validation.solution_calibration import calibration_of
from core.watch import Stopped

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1)
"""values of λ that are tried for the supervised SVM, on rows of mean square norm 1"""
_ESTIMATED, _TUNED, _COMPARED, _REFITTED = 0.7, 0.75, 0.85, 0.9
"""shares of the work that are done when the fractions are estimated, when λ of the supervised SVM is found, when all candidates are known, and when
naive Bayes has learned of all features"""
_MOST_SCALE = 1e12
"""bound on the scale of the features and on its inverse: within it float32 holds distances of the original rows, with digits to spare"""
_NAMES = {
    "svm": "the supervised SVM",
    "tsvm": "the transductive SVM",
    "graph": "label spreading",
    "mixture": "naive Bayes",
}


class Selection(NamedTuple):
    """What auto ends with."""

    results: list[Result]
    """solutions of the selected method on the features as they came, one a two-class problem; if stopped, the best iterates"""
    calibrate: Callable[[], Calibration]
    """calibration by the held-out scores; raises Stopped"""
    report: dict[str, Any]
    """what was tried, what it showed, what was selected and why, as JSON"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by the selected method without their labels; NaN where no fold leaves the row out"""
    likelier: bool
    """whether labels left out are likelier by the selected method than if all classes were as likely"""
    fractions: NDArray[np.float64] | None
    """shape (n_classes,): class fractions of the unlabeled documents; None if there are none of these"""


class Candidate(NamedTuple):
    """A method that may be selected."""

    algorithm: str
    """name in the report"""
    ridge: float | None
    """λ, of the SVMs"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels; NaN where no fold leaves the row out"""
    found: FractionEstimate | None = None
    """class fractions by this method; None of the supervised SVM, which has none"""
    label_spreading: LabelSpreading | None = None
    naive_bayes: NaiveBayes | None = None

    @property
    def margins(self) -> NDArray[np.float64]:
        """shape (n_labeled, n_problems): the held-out scores by which methods are compared, each of a class against all others."""
        return self.held_out if self.naive_bayes is None else self.naive_bayes.margins


def auto(
    sweeper_of: Callable[[SparseRows], Sweeper],
    data: SelectionData,
    classes: Sequence[str | int],
    options: AutoOptions,
    given: NDArray[np.float64] | None,
    checkpoint: Checkpoint,
    linear: bool = False,
) -> Selection:
    """Select a method on labels left out, and solve with it.

    ``sweeper_of`` makes what runs solvers over some rows. ``given`` are the class fractions, shape (n_classes,), if they are known. ``checkpoint`` is
    called between slices of work outside the solvers. With ``linear``, methods whose models are not are left out.

    1. The transductive SVM gets the class fractions that core.selection.class_fractions estimates. That also finds whether numbers of labels are
       evidence of them.
    2. The supervised SVM gets its λ by cross-validation. The transductive SVM is selected if it predicts labels left out no worse.
    3. Label spreading is tried where neighbours are meaningful, naive Bayes where documents can be bags of terms. One of them is selected if it
       predicts labels left out better than all others.
    4. The class fractions are the mean of what the candidates estimate. Where the transductive SVM or naive Bayes is selected, the model has the
       scores of both (core.selection.stack).

    Of many documents all of this is done with frequent features alone (core.selection.frequent_features); the selected method has all.
    Raises Stopped before a method is selected, and ModelTooLarge.
    """
    frequent = with_frequent_features(data, checkpoint)
    with sweeper_of(frequent.scaled.rows) as sweeper:
        candidates, found = _candidates(sweeper, data, frequent, given, checkpoint, linear)
    best, why, figures = select(data, candidates)
    found = _pooled_fractions(data, candidates, best, found)
    weights = _stacked(data, candidates, best)
    with sweeper_of(data.scaled.rows) as sweeper:
        rest = Part(_COMPARED if frequent is data else _REFITTED, 1.0)
        results, held_out = _solutions(sweeper, data, weights, found, options, rest, checkpoint)
    report = {
        "chosen": {"algorithm": best.algorithm, "lambda": best.ridge, "why": why + _stacked_words(weights), "weights": _named_weights(weights)},
        "tried": [_tried_report(data, classes, candidate) for candidate in candidates],
        "held_out": figures,
        "features": "each divided by its root mean square" if data.scaled.equalised else "all by one scale",
        **({} if found is None else found.report(classes)),
    }
    fractions = None if found is None else found.fractions
    calibrate = partial(_calibration_of, data, weights, results, held_out, fractions, checkpoint)
    original = [_on_original_features(result, data) for result in results]
    return Selection(original, calibrate, report, held_out, judgement_of(data, best).likelier, fractions)


def _candidates(
    sweeper: Sweeper, data: SelectionData, frequent: SelectionData, given: NDArray[np.float64] | None, checkpoint: Checkpoint, linear: bool
) -> tuple[list[Candidate], FractionEstimate | None]:
    """All candidates, the supervised SVM first, and the class fractions by the transductive SVM, None without unlabeled documents; raises Stopped."""
    if not data.problems[0].n_unlabeled:
        return [grid_search(sweeper, frequent, Part(0.0, _TUNED))], None
    found = estimate_fractions(sweeper, frequent, Part(0.0, _ESTIMATED), given)
    supervised, transductive = grid_search(sweeper, frequent, Part(_ESTIMATED, _TUNED)), Candidate("tsvm", LAMBDA, found.held_out, found)
    candidates = [supervised, transductive, *([] if linear else _label_spreading(data, found, given, checkpoint))]
    if _naive_bayes_applies(data):
        naive_bayes = NaiveBayes.of(sweeper, frequent, found.grids, given, Part(_TUNED, _COMPARED), checkpoint)
        candidates.append(Candidate("mixture", None, naive_bayes.estimate.held_out, naive_bayes.estimate, naive_bayes=naive_bayes))
    return candidates, found


def grid_search(sweeper: Sweeper, data: SelectionData, part: Part) -> Candidate:
    """The supervised SVM with the λ by which labels left out are likeliest, of equals the larger; raises Stopped."""
    places = [(column, fold) for column in range(len(data.problems)) for fold in range(data.n_folds)]
    fits = {ridge: {place: SupervisedFit() for place in places} for ridge in LAMBDAS}
    steps: dict[str, Callable[[], Steps]] = {
        f"{data.prefixes[column]}svm/lambda={ridge:g}/fold={fold}/": partial(
            fit.steps, data.problems[column], data.folds == fold, SvmOptions(lambda_=ridge)
        )
        for ridge, of_ridge in fits.items()
        for (column, fold), fit in of_ridge.items()
    }
    sweeper.run(steps, part)
    candidates = [Candidate("svm", ridge, held_out_scores(of_ridge, data.folds, len(data.problems))) for ridge, of_ridge in fits.items()]
    return max(candidates, key=lambda candidate: (judgement_of(data, candidate).log_likelihood, candidate.ridge))


def judgement_of(data: SelectionData, candidate: Candidate) -> Judgement:
    """What labels left out say of a candidate."""
    return judge(candidate.margins[data.left_out], data.class_indices[data.left_out])


def select(data: SelectionData, candidates: Sequence[Candidate]) -> tuple[Candidate, str, dict[str, Any] | None]:
    """The candidate that predicts labels left out best, why, and the figures for the report. The supervised SVM is the first candidate.

    Predictions are compared by the log-likelihood of the labels, each candidate's scores on its own scale (core.selection.comparison). Of equals,
    as where no label can be left out, the transductive SVM is preferred. Of more than two classes naive Bayes must also win where they are weighed by
    their fractions: of two, a threshold alone decides that.
    """
    if len(candidates) == 1:
        return candidates[0], "there are no unlabeled documents", None
    class_indices = data.class_indices[data.left_out]
    judgements = [judgement_of(data, candidate) for candidate in candidates]
    best, at_fractions = best_of(judgements), _judgements_at_fractions(data, candidates)
    doubted = data.n_classes > 2 and candidates[best].naive_bayes is not None and best_of(at_fractions) != best
    best = best_of(judgements[:best]) if doubted else best
    figures = {"labels": len(class_indices), "folds": data.n_folds, "log_likelihood_of_chance": judgements[best].chance} | {
        candidate.algorithm: {"log_likelihood": each.log_likelihood, "log_likelihood_at_fractions": other.log_likelihood, "right": each.right}
        for candidate, each, other in zip(candidates, judgements, at_fractions, strict=True)
    }
    if len(np.unique(class_indices)) < 2:
        why = f"too few labels to compare methods: {len(class_indices)} can be left out, and not of two classes; the transductive SVM is the default"
        return candidates[best], why, figures
    right = ", ".join(f"{_NAMES[candidate.algorithm]} is right on {each.right}" for candidate, each in zip(candidates, judgements, strict=True))
    name = _NAMES[candidates[best].algorithm]
    verdict = f"none does better than {name}" if best else f"{name} does best, and the unlabeled documents seem to do harm"
    doubt = "; naive Bayes does only if small classes count as much as large ones" if doubted else ""
    why = f"{len(class_indices)} labels were left out and predicted: {right}; counting how sure each prediction is, {verdict}{doubt}"
    return candidates[best], why, figures


def _judgements_at_fractions(data: SelectionData, candidates: Sequence[Candidate]) -> list[Judgement]:
    """The same where labels of a class weigh what the class does: the mean of the candidates' class fractions.

    There is no margin between the classes of naive Bayes. On texts whose classes differ in size it gains on small ones what it loses on large ones.
    """
    known = data.left_out
    fractions = np.mean([candidate.found.fractions for candidate in candidates if candidate.found is not None], axis=0)
    return [judge(candidate.margins[known], data.class_indices[known], fractions) for candidate in candidates]


def _pooled_fractions(
    data: SelectionData, candidates: Sequence[Candidate], best: Candidate, found: FractionEstimate | None
) -> FractionEstimate | None:
    """The class fractions: the mean of what the candidates estimate, each weighing by how likely labels left out are by it.

    Everything else is the estimate of the ``best`` one or, of the supervised SVM, which has none, ``found`` by the transductive one.
    """
    estimating = [candidate for candidate in candidates if candidate.found is not None]
    if found is None or len(estimating) < 2:
        return found
    weights = weights_of([judgement_of(data, candidate).log_likelihood for candidate in estimating], POOLED)
    pooled = sum_of([weight * each.found.fractions for weight, each in zip(weights, estimating, strict=True) if each.found is not None])
    return replace(best.found or found, fractions=pooled)


def _stacked(data: SelectionData, candidates: Sequence[Candidate], best: Candidate) -> list[tuple[Candidate, float]]:
    """The best candidate with its weight, and those that are stacked with it: the transductive SVM and naive Bayes, which are both linear."""
    linear = [each for each in candidates if each.found is not None and each.label_spreading is None]
    if best not in linear or not len(data.class_indices[data.left_out]):
        return [(best, 1.0)]
    weights = stack_weights([judgement_of(data, candidate).log_likelihood for candidate in linear])
    stacked = [(candidate, weight) for candidate, weight in zip(linear, weights, strict=True) if weight or candidate is best]
    return sorted(stacked, key=lambda each: each[0] is not best)


def _stacked_words(weights: Sequence[tuple[Candidate, float]]) -> str:
    others = [f"{_NAMES[candidate.algorithm]} has a share of {weight:.0%} in the scores" for candidate, weight in weights[1:]]
    return "".join(f"; {each}" for each in others)


def _named_weights(weights: Sequence[tuple[Candidate, float]]) -> dict[str, float]:
    return {candidate.algorithm: weight for candidate, weight in weights}


def _solutions(
    sweeper: Sweeper,
    data: SelectionData,
    weights: Sequence[tuple[Candidate, float]],
    found: FractionEstimate | None,
    options: AutoOptions,
    part: Part,
    checkpoint: Checkpoint,
) -> tuple[list[Result], NDArray[np.float64]]:
    """The solutions of the candidates as one, and their held-out scores. After a stop those of the first candidate, as far as it came."""
    solvers = {
        f"{data.prefixes[column]}{'' if place == 0 else 'stacked/'}": solver
        for place, (candidate, _) in enumerate(weights)
        for column, solver in enumerate(_solvers(sweeper, data, candidate, found, options))
    }
    results, n_problems = sweeper.run(solvers, part), len(data.problems)
    best = results[:n_problems], weights[0][0].held_out
    if len(weights) == 1:
        return best
    try:
        ensure_complete(results)
        members = []
        for place, (candidate, weight) in enumerate(weights):
            own = results[place * n_problems : (place + 1) * n_problems]
            fractions = None if found is None else found.fractions
            calibration = calibration_of(own, candidate.held_out, data.class_indices, data.n_classes, fractions, checkpoint)
            members.append(Member(weight, own, candidate.held_out, calibration))
        return stack(members)
    except Stopped:
        return best


def _label_spreading(data: SelectionData, found: FractionEstimate, given: NDArray[np.float64] | None, checkpoint: Checkpoint) -> list[Candidate]:
    """Label spreading, if it applies to such rows, with the same fractions tried and its own estimated; raises Stopped."""
    rows, scale = data.scaled.rows, float(data.scaled.scales.max(initial=0.0))
    offered = label_spreading_applies(rows.n_rows, rows.n_features, rows.n_nonzeros) and not data.scaled.equalised
    if not offered or not 1 / _MOST_SCALE < scale < _MOST_SCALE:
        return []
    spreading = LabelSpreading(data, checkpoint)
    spread = combine_evidence(data, spreading.paths([refine_grid(grid) for grid in found.grids]), spreading.predicted, given)
    return [Candidate("graph", None, spread.held_out, spread, spreading)]


def _naive_bayes_applies(data: SelectionData) -> bool:
    """Whether documents can be bags of terms."""
    rows = data.scaled.rows
    offered = naive_bayes_applies(rows.n_rows, rows.n_features, rows.n_nonzeros, data.n_classes) and not data.scaled.equalised
    return offered and float(rows.values.min(initial=0.0)) >= 0


def _calibration_of(
    data: SelectionData,
    weights: Sequence[tuple[Candidate, float]],
    results: Sequence[Result],
    held_out: NDArray[np.float64],
    fractions: NDArray[np.float64] | None,
    checkpoint: Checkpoint,
) -> Calibration:
    """The calibration of the solutions; raises Stopped. Scores of a stack are made of probabilities and are not fitted to the same labels again."""
    if len(weights) == 1 or fractions is None:
        return calibration_of(results, held_out, data.class_indices, data.n_classes, fractions, checkpoint)
    slopes = np.full(len(results), SLOPE)
    scores = np.column_stack([result.unlabeled_scores for result in results])
    return calibration_at(slopes, np.zeros(len(results)), scores, fractions, checkpoint)


def _solvers(
    sweeper: Sweeper, data: SelectionData, best: Candidate, found: FractionEstimate | None, options: AutoOptions
) -> list[Callable[[], Steps]]:
    if found is None or best.algorithm == "svm":
        assert best.ridge is not None
        return [partial(svm, problem, SvmOptions(lambda_=best.ridge, tolerance=options.tolerance)) for problem in data.problems]
    fractions = [float(fraction) for fraction in found.fractions[data.positives]]
    if best.naive_bayes is not None:
        naive_bayes = best.naive_bayes.fitted_to(sweeper, data, Part(_COMPARED, _REFITTED))
        intercepts = naive_bayes.intercepts(found.fractions)
        return [partial(naive_bayes.steps, positive, intercepts) for positive in data.positives]
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
    kernel = result.decision.kernel  # of label spreading, which applies only where all features have one scale
    return replace(result, decision=result.decision._replace(kernel=kernel._replace(gamma=kernel.gamma * float(scales.max(initial=0.0)) ** 2)))


def _tried_report(data: SelectionData, classes: Sequence[str | int], candidate: Candidate) -> dict[str, Any]:
    """What was tried of a candidate, for the report."""
    if candidate.found is None:
        return {"algorithm": candidate.algorithm, "lambda": list(LAMBDAS), "best_lambda": candidate.ridge}
    own: dict[str, Any] = {"lambda": candidate.ridge, "lambda_u": 1.0} if candidate.ridge is not None else {}
    own |= {"neighbours": NEIGHBOURS} if candidate.label_spreading else {}
    grids = zip([str(classes[positive]) for positive in data.positives], candidate.found.tried, strict=True)
    return {"algorithm": candidate.algorithm, **own, "fractions": dict(grids)}
