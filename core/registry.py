"""The algorithms by name. Solvers are named, not imported, so that reading the registry costs nothing."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from core.errors import UnknownAlgorithm
from core.kernel_options import CccpOptions, KernelOptions, RampOptions
from core.options import AnnealingOptions, AutoOptions, Cuts3vmOptions, Options, SvmOptions, TsvmOptions
from core.relaxation_options import CtsvmOptions

if TYPE_CHECKING:
    from core.solver import Solver


@dataclass(frozen=True)
class Algorithm:
    """One way of training a two-class model."""

    name: str
    title: str
    options: type[Options]
    solver: str
    """``module:function`` of its core.solver.Solver"""
    start: Literal["coefficients", "scores"] | None = "coefficients"
    """what of another model its solver can start from"""

    def load(self) -> "Solver":
        """The solver, imported at first use."""
        module, _, function = self.solver.partition(":")
        return cast("Solver", getattr(import_module(module), function))


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("svm", "L2-SVM, modified finite Newton", SvmOptions, "core.supervised.svm:svm"),
        Algorithm("tsvm", "transductive L2-SVM, multiple switching", TsvmOptions, "core.semisup.tsvm:tsvm"),
        Algorithm("da", "deterministic (mean-field) annealing", AnnealingOptions, "core.semisup.annealing:annealing"),
        Algorithm("cuts3vm", "transductive SVM with hinge loss, cutting planes", Cuts3vmOptions, "core.semisup.cuts3vm:cuts3vm"),
        Algorithm("kernel_svm", "SVM with hinge loss in the space of a kernel", KernelOptions, "core.supervised.kernel_svm:kernel_svm", start=None),
        Algorithm("ramp_svm", "SVM with ramp loss, concave-convex procedure, kernels", RampOptions, "core.supervised.ramp:ramp_svm", "scores"),
        Algorithm("cccp_tsvm", "transductive SVM, concave-convex procedure, kernels", CccpOptions, "core.semisup.cccp:cccp_tsvm", "scores"),
        Algorithm("ctsvm", "transductive SVM, convex relaxation, kernels", CtsvmOptions, "core.semisup.ctsvm:ctsvm", start=None),
    )
}
"""The solvers, by name."""

AUTO = Algorithm("auto", "chooses method, λ and class fractions, and calibrates", AutoOptions, "", start=None)
"""No solver: core.selection.auto runs several."""

OFFERED = {AUTO.name: AUTO, **ALGORITHMS}
"""What a training may ask for."""


def algorithm(name: str) -> Algorithm:
    """What is offered by that name; raises UnknownAlgorithm with the known ones."""
    try:
        return OFFERED[name]
    except KeyError:
        raise UnknownAlgorithm(name, tuple(OFFERED)) from None
