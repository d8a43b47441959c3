"""Mean-field annealing of all classes together: the beliefs of a row are then those of a Potts glass."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.annealing import AnnealingPath, annealing
from core.engine.requests import Barrier, Procedure, Steps
from core.losses.balance import balanced_probabilities, label_gains
from core.losses.squared_hinge import transductive_objective
from core.numerics.elementary import Matrix, Vector, exp, log, log_add_exp
from core.numerics.vectors import dot
from core.optimizers.subspace import in_kernel_space
from core.options.subspace import PottsOptions
from core.problem import Problem, Status

_SWEEPS = 50
_UNBALANCED = 1e-6
"""largest distance from its fraction that the mean belief in a class may have"""
_NEVER = -1e300
"""logarithm of the weight of a class that no row is believed to be of"""
_LEAST_PROBABILITY = 1e-300


class Potts:
    """The solver of the two-class problems of so many classes, one against the rest each.

    Objective at temperature T: the sum over classes k of ``λ/2 |w_k|² + 1/2 Σ_i weight_i max(0, 1 − y_ik o_ik)²
    + λ'/2 Σ_j weight_j (p_jk max(0, 1 − o'_jk)² + (1 − p_jk) max(0, 1 + o'_jk)²)``, less ``T/2 Σ_j weight_j H(p_j)``
    with the entropy H of a row's beliefs in all classes (footnote 10 of Sindhwani & Keerthi 2006). Constraints:
    ``Σ_k p_jk = 1`` and ``Σ_j weight_j p_jk = fraction_k``, the latter within 1e-6 or as near as 50 sweeps come.
    Stages, stops and options are those of ``annealing``; of two classes it is ``annealing``. With given p the problems
    are apart: they meet to find p and to compare J, in which each row has the class that costs least in all problems
    together. Results: the iterates of least J on the path, each with its share of J.
    """

    def __init__(self, n_problems: int) -> None:
        self._n_problems, self._begun = n_problems, 0
        self._paths: dict[int, CoupledPath] = {}
        self._beliefs = np.zeros((n_problems, 0))
        self._multipliers = np.zeros(n_problems)
        self._least = np.inf
        self.balanced, self.compared = Barrier(n_problems, self._balance), Barrier(n_problems, self._compare)

    def __call__(self, problem: Problem, options: PottsOptions, init: Vector | None = None, /) -> Steps:
        """The steps of the next of the problems."""
        if self._n_problems == 1:
            return in_kernel_space(annealing, problem, options)
        self._begun += 1
        return in_kernel_space(partial(self._coupled, self._begun - 1), problem, options)

    def _coupled(self, place: int, problem: Problem, options: PottsOptions) -> Steps:
        self._paths[place] = CoupledPath(problem, options, self, place)
        return (yield from self._paths[place].steps())

    def _members(self) -> "list[CoupledPath]":
        return [self._paths[place] for place in range(self._n_problems)]

    def _balance(self) -> "_Balanced":
        """The beliefs at the scores and at the temperature that all problems have come to."""
        members, last = self._members(), self._beliefs
        weights = members[0].weights
        fractions = np.array([path.fraction for path in members])
        self._beliefs = class_beliefs(_gains(members), weights, fractions, members[0].temperature, self._multipliers)
        logarithms = log(np.maximum(self._beliefs, _LEAST_PROBABILITY))
        change = np.inf
        if last.size:
            change = _mean(self._beliefs * (logarithms - log(np.maximum(last, _LEAST_PROBABILITY))), weights)
        return _Balanced(self._beliefs, -_mean(self._beliefs * logarithms, weights), change)

    def _compare(self) -> "_Compared":
        """The shares of J of all problems if it is the least so far, and the worst of their statuses."""
        members = self._members()
        labels = _gains(members).argmin(axis=0)
        shares = [path.share_of_objective(labels == place) for place, path in enumerate(members)]
        improved = sum(shares) < self._least
        self._least = sum(shares) if improved else self._least
        return _Compared(shares if improved else None, reduce(Status.worse, (path.status for path in members)))


class _Balanced(NamedTuple):
    beliefs: Matrix
    """shape (n_problems, n_unlabeled)"""
    entropy: float
    """mean over the rows"""
    change: float
    """mean divergence from the last beliefs"""


class _Compared(NamedTuple):
    shares: list[float] | None
    status: Status


class CoupledPath(AnnealingPath):
    """The state of one problem."""

    def __init__(self, problem: Problem, options: PottsOptions, potts: Potts, place: int) -> None:
        super().__init__(problem, options)
        self._potts, self._place = potts, place
        self.temperature, self.status = np.inf, Status.CONVERGED

    def believe(self, temperature: float) -> Procedure[float]:
        """See AnnealingPath: the beliefs of all problems are found together."""
        self.temperature = temperature
        found: _Balanced = yield self._potts.balanced
        self.beliefs, self.entropy = found.beliefs[self._place], found.entropy
        return found.change

    def compare(self, status: Status) -> Procedure[Status]:
        """See AnnealingPath: J is that of all problems, and so is the status."""
        self.status = status
        found: _Compared = yield self._potts.compared
        if found.shares is not None:
            self.keep(found.shares[self._place])
        return found.status

    def share_of_objective(self, positive: NDArray[np.bool_]) -> float:
        """The part of J that is this problem's, where these unlabeled rows are of its class."""
        iterate, options = self.iterate, self.options
        labeled = transductive_objective(self.problem, options.lambda_, 0.0, iterate.coefficients, iterate.scores)
        short = np.maximum(0.0, 1.0 - np.where(positive, 1.0, -1.0) * self.unlabeled_scores)
        return labeled + 0.5 * options.lambda_u * dot(self.weights, short * short)


def _gains(members: "Sequence[CoupledPath]") -> Matrix:
    """Cost of each class less that of no class, shape (n_problems, n_unlabeled), in units of λ'."""
    gains = np.empty((len(members), members[0].problem.n_unlabeled))
    for path, own in zip(members, gains, strict=True):
        label_gains(path.unlabeled_scores, own)
    return gains


def _mean(values: Matrix, weights: Vector) -> float:
    return sum(dot(weights, own) for own in values)


def class_beliefs(gains: Matrix, weights: Vector, fractions: Vector, temperature: float, multipliers: Vector) -> Matrix:
    """Beliefs p of shape (n_classes, n_rows), ``p_jk ∝ exp((ν_k − g_jk) / T)``, with weighted means ``fractions``.

    ``gains`` are g; ``multipliers``, shape (n_classes,), are ν: a guess at first, then what was found. A sweep balances
    one class after the other with the others as they are, by ``balanced_probabilities`` of it against them all: the
    dual problem, which is concave, rises with each.
    """
    n_classes, empty = len(gains), np.full(gains.shape[1], _NEVER)
    for _ in range(_SWEEPS):
        powers = (multipliers[:, None] - gains) / temperature
        after = [empty]
        for own in powers[:0:-1]:
            after.append(log_add_exp(after[-1], own))
        before = empty
        for k in range(n_classes):
            rest = log_add_exp(before, after[n_classes - 1 - k])
            found = balanced_probabilities(
                gains[k] + temperature * rest, weights, float(fractions[k]), temperature, multipliers[k]
            )
            multipliers[k] = min(max(found.multiplier, _NEVER), -_NEVER)
            before = log_add_exp(before, (multipliers[k] - gains[k]) / temperature)
        beliefs = exp((multipliers[:, None] - gains) / temperature - before)
        if max(abs(dot(weights, own) - share) for own, share in zip(beliefs, fractions, strict=True)) < _UNBALANCED:
            break
    return beliefs
