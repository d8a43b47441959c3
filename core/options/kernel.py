"""The options of the kernel family, and the memory that it takes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from core.numerics.width import WIDTH
from core.options.base import BalancedOptions, SolverOptions, TrainingSize, Weight

_BY_COLUMNS, _SCORED = 8, 16
"""bytes a nonzero: the rows by their columns; the rows that a solver of labeled rows scores, twice"""

Clip = Annotated[float, Field(gt=-1, le=0, allow_inf_nan=False)]


class KernelChoice(SolverOptions):
    """Which kernel function to learn with."""

    estimation_share: ClassVar[float] = 0.1
    """as in Options: an estimate is linear, whatever it is for"""

    kernel: Literal["linear", "rbf", "poly"] = Field(default="rbf", description="x·z, exp(−gamma |x − z|²) or (gamma x·z + coef0)^degree.")
    gamma: Weight | Literal["scale", "median"] = Field(
        default="scale",
        description="Factor in the kernel; scale: 1 / (features · variance of all values), median: 1 / (2 · median distance of two documents ²).",
    )
    degree: int = Field(default=3, ge=1, le=10, description="Power of the polynomial kernel.")
    coef0: float = Field(default=0.0, ge=0, le=1e9, allow_inf_nan=False, description="Constant of the polynomial kernel.")


class KernelOptions(KernelChoice):
    """What every algorithm takes that learns an expansion in kernel functions by pairs of multipliers."""

    uses_unlabeled: ClassVar[bool] = False
    """whether the unlabeled documents have multipliers, too, and so kernel rows"""

    C: Weight = Field(default=1.0, description="Weight of the summed losses of the labeled documents against ½ |w|²; large is hardly smooth.")
    tolerance: float = Field(
        default=1e-3, ge=1e-9, le=1, description="A convex solve ends when no pair of documents violates the optimality conditions by more."
    )
    cache_bytes: int = Field(default=2**30, ge=0, description="Most bytes of kernel values kept at a time; a few rows are kept however small it is.")

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the cached kernel rows, and of the rows by their columns of all problems that are solved at a time."""
        per_nonzero = _BY_COLUMNS + (0 if self.uses_unlabeled else _SCORED)
        return self.cached_bytes(size) + size.n_parallel * per_nonzero * size.n_nonzeros

    def cached_bytes(self, size: TrainingSize) -> int:
        """Bytes of the kernel values that are kept."""
        n_points = size.n_documents if self.uses_unlabeled else size.n_labeled
        return min(self.cache_bytes, 4 * n_points**2)

    def memory_remedy(self, size: TrainingSize) -> str:
        """See Options."""
        cached, fewer = self.cached_bytes(size), super().memory_remedy(size)
        return f"lower cache_bytes, since {cached / 2**20:.0f} MiB of it are for kernel values, or {fewer}" if cached else fewer


class RampOptions(KernelOptions):
    """Options of the SVM with ramp loss."""

    s: float = Field(default=-0.2, ge=-1e6, lt=1, allow_inf_nan=False, description="A document that scores below s for its class counts no further.")
    start: Literal["zero", "subset"] = Field(
        default="zero", description="Begin from the hinge-loss SVM on all labeled documents (zero), or on a part of them, which is faster (subset)."
    )
    subset_fraction: float = Field(default=0.1, gt=0, le=1, description="Share of the labeled documents of each class in that part.")
    max_iterations: int = Field(default=100, ge=1, le=1_000_000, description="Most convex solves; reaching it is told in the status.")

    def cached_bytes(self, size: TrainingSize) -> int:
        """Bytes of the kernel values that are kept, those of the first part too."""
        if self.start == "zero":
            return super().cached_bytes(size)
        n_part = round(self.subset_fraction * size.n_labeled) + 2
        return super().cached_bytes(size) + min(self.cache_bytes, WIDTH * 4 * n_part**2)


class CccpOptions(KernelOptions, BalancedOptions):
    """Options of the transductive SVM by the concave-convex procedure."""

    uses_unlabeled: ClassVar[bool] = True

    C_u: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="Weight of the summed losses of the unlabeled documents; by default labeled and unlabeled weigh the same in total."
    )
    s: Clip = Field(default=-0.2, description="Scores of unlabeled documents between s and −s all cost the same: the loss is flat there.")
    max_iterations: int = Field(default=100, ge=1, le=1_000_000, description="Most convex solves; reaching it is told in the status.")
