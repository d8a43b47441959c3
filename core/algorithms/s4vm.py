"""The safe semi-supervised SVM: labels that gain most over the SVM whichever low-density separator is right."""

from dataclasses import replace

import numpy as np

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.engine.requests import Procedure, Report, Steps, Yield, as_part
from core.losses.squared_hinge import labeled_costs
from core.numerics.elementary import Matrix, Vector, exp, standard_normal
from core.numerics.small_dense import combined
from core.numerics.vectors import dot, dots
from core.optimizers.newton import Iterate, StoppingRule, minimise, result_of
from core.optimizers.subspace import in_kernel_space
from core.options.linear import TsvmOptions
from core.options.subspace import S4vmOptions
from core.problem import Problem, Result, Status
from core.progress import Phase, Span, Stopped

_ROUNDS = 2000
_FARTHEST = 2.0
"""length of the last random direction, in units of that of the SVM"""


def s4vm(problem: Problem, options: S4vmOptions, init: Vector | None = None, /) -> Steps:
    """SVM with labels of the unlabeled rows that are better than its own for the worst of several separators.

    Separators ŷ_t: the ends of ``tsvm`` from the SVM and from ``starts`` directions, which are the SVM's and ever
    larger random ones; ``separators`` of them with the least J (Eqn. 18 of Sindhwani & Keerthi 2006) are kept. Labels:
    the y of the largest ``min_t Σ_j weight_j [earn_j − loss_weight · lose_j]``, where row j earns if y agrees with ŷ_t
    and the SVM does not, and loses if the SVM agrees with ŷ_t and y does not (Eqn. 9 of Li & Zhou 2015). The problem is
    relaxed to −1 ≤ y ≤ 1 and solved as a game, by multiplicative weights. Where no y gains, they are the SVM's. Result:
    ``λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)² + λ'/2 Σ_j weight_j max(0, 1 − y_j o'_j)²`` at its minimum;
    without a gain the SVM. Random numbers come from the seed; ``init`` is not used.
    """
    return (yield from in_kernel_space(_linear, problem, options))


def _linear(problem: Problem, options: S4vmOptions) -> Steps:
    if problem.n_unlabeled == 0:
        return (yield from svm(problem, options))
    part = 0.9 / (options.starts + 2)
    baseline = yield from as_part(svm(problem, options), Span(0.0, part))
    if baseline.status is Status.CANCELLED:
        return baseline
    found: list[Result] = []
    own = TsvmOptions.model_validate({name: getattr(options, name) for name in TsvmOptions.model_fields})
    for number in range(options.starts + 1):
        start = _direction(problem, baseline, number / options.starts * _FARTHEST, number) if number else None
        steps = tsvm(problem, own, start)
        found.append((yield from as_part(steps, Span((number + 1) * part, (number + 2) * part))))
        if found[-1].status is Status.CANCELLED:
            return replace(baseline, status=Status.CANCELLED)
    kept = sorted(found, key=lambda each: each.objective)[: options.separators]
    separators = np.stack([_signs(each) for each in kept])
    try:
        labels = yield from safest_labels(_signs(baseline), separators, _weights(problem), options.loss_weight)
    except Stopped:
        return replace(baseline, status=Status.CANCELLED)
    if labels is None:
        return baseline
    return (yield from _retrained(problem, options, baseline, labels))


def _direction(problem: Problem, baseline: Result, length: float, number: int) -> Vector:
    vector = baseline.coefficients
    random = standard_normal(np.random.default_rng([problem.seed, number]), len(vector))
    return np.asarray(vector + random * (length * np.sqrt(dot(vector, vector) / dot(random, random))))


def _signs(result: Result) -> Vector:
    return np.where(result.unlabeled_scores > 0, 1.0, -1.0)


def _weights(problem: Problem) -> Vector:
    return problem.weights[problem.n_labeled :]


def safest_labels(own: Vector, separators: Matrix, weights: Vector, loss_weight: float) -> Procedure[Vector | None]:
    """The labels y, shape (n_rows,), that gain most over ``own`` for the worst of some ``separators``, shape
    (n_separators, n_rows), or None where nothing gains.
    """
    slopes = 0.25 * weights * ((1.0 + loss_weight) * separators - (1.0 - loss_weight) * own)
    agreements = separators * own
    offsets = 0.25 * (weights * (1.0 - agreements - loss_weight * (1.0 + agreements))).sum(axis=1)
    gains, total, belief = np.zeros(len(separators)), np.zeros(len(separators)), np.zeros_like(own)
    for _ in range(_ROUNDS):
        odds = exp((total.min() - total) * np.sqrt(_ROUNDS))
        answer = np.where(combined(odds / odds.sum(), slopes) > 0, 1.0, -1.0)
        dots(slopes, answer, gains)
        total += (gains + offsets) / _ROUNDS
        belief += answer
        yield Yield()
    labels = np.where(belief > 0, 1.0, -1.0)
    dots(slopes, labels, gains)
    return labels if (gains + offsets).min() > 0 else None


def _retrained(problem: Problem, options: S4vmOptions, baseline: Result, labels: Vector) -> Steps:
    iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
    scaled = options.lambda_u * _weights(problem)
    costs = labeled_costs(problem).with_unlabeled(scaled * (labels > 0), scaled * (labels < 0))
    rule = StoppingRule(options.tolerance, max_iterations=options.max_iterations)
    try:
        ending = yield from minimise(
            iterate, costs, options.lambda_, rule, Report(Phase("s4vm"), 0, 0.0, None, 0.9, 0.1)
        )
    except Stopped:
        return replace(baseline, status=Status.CANCELLED)
    return result_of(iterate, problem, ending.objective, ending.status)
