"""Deterministic annealing in the space of a kernel."""

from core.algorithms.annealing import annealing
from core.engine.runner import Steps, Vector
from core.optimizers.subspace import in_kernel_space
from core.options.subspace import KernelAnnealingOptions
from core.problem.problem import Problem


def kernel_da(problem: Problem, options: KernelAnnealingOptions, init: Vector | None = None, /) -> Steps:
    """Mean-field annealing of functions f in the space of a kernel (Sindhwani & Keerthi 2006, *Non-linear Mean Field
    Annealing*; Sindhwani, Keerthi & Chapelle 2006).

    Objective: that of ``annealing`` with |f|² of the kernel's space in place of |w|². The minimisation over w is the
    finite Newton method over coordinates (core.kernels.coordinates), the balance and the stages are those of
    ``annealing``.
    """
    return (yield from in_kernel_space(annealing, problem, options))
