"""The options of the kernel family, and the memory that it takes."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from core.numerics.width import WIDTH
from core.one_vs_rest import n_problems
from core.options.base import LARGEST_WEIGHT, MOST_SMOOTHING, BalancedOptions, SolverOptions, TrainingSize, Weight

_BY_COLUMNS, _SCORED = 8, 16
"""bytes a nonzero: the rows by their columns; the rows that a solver of labeled rows scores, twice"""

_SHARPEST = 1e4
"""gamma times a squared length beyond which an RBF kernel finds no two documents alike"""

MOST_LABELS = 1_000
"""labeled documents, at most, by which C and gamma are chosen, but two of each class: of more, as large a share of each
class"""
_HELD_OUT = 80
"""bytes a label and two-class problem: its scores for all values of C, twice"""

Clip = Annotated[float, Field(gt=-1, le=0, allow_inf_nan=False)]


class KernelFunction(SolverOptions):
    """Which kernel function to learn with."""

    kernel: Literal["linear", "rbf", "poly"] = Field(
        default="rbf", description="x·z, exp(−gamma |x − z|²) or (gamma x·z + coef0)^degree."
    )
    gamma: Weight | Literal["auto", "scale", "median"] = Field(
        default="auto",
        description="Factor in the kernel; auto: of rbf chosen by cross-validation of the labels, else scale; scale: "
        "1 / (features · variance of the "
        "values that are trained on), median: 1 / (2 · median distance of two documents ²).",
    )
    degree: int = Field(default=3, ge=1, le=10, description="Power of the polynomial kernel.")
    coef0: float = Field(
        default=0.0, ge=0, le=1e9, allow_inf_nan=False, description="Constant of the polynomial kernel."
    )

    @property
    def holds_rows(self) -> bool:
        """See Options: kernel values are of pairs of rows."""
        return True

    @property
    def depends_on_scale(self) -> bool:
        """See Options; a rule for gamma makes up for the scale of the values."""
        return self.kernel == "linear" or not isinstance(self.gamma, str)

    def is_sharp(self, length: float) -> bool:
        """Whether no two documents of this length |x| are alike by an RBF kernel."""
        return self.kernel == "rbf" and not isinstance(self.gamma, str) and self.gamma * length**2 > _SHARPEST


class KernelChoice(KernelFunction):
    """Which kernel function to learn with, and how much losses weigh."""

    uses_unlabeled: ClassVar[bool] = False
    """whether the unlabeled documents have multipliers, too, and so kernel rows"""
    weight_unit: ClassVar[float] = 1.0
    """C that weighs losses as C = 1 does beside ½ |w|²"""
    tuning_share: ClassVar[float] = 0.5
    """share of the work that the choice of C and gamma takes, where the data choose them; of labeled documents alone it
    is most of it"""
    warm_up_options: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"kernel": "poly"})
    one_class_remedy: ClassVar[str] = "try a larger C or the algorithm auto"
    range_remedy: ClassVar[str] = "use another kernel, or lower degree, coef0 or C"

    C: Weight | Literal["auto"] = Field(
        default="auto",
        description="Weight of the summed losses of the labeled documents against ½ |w|²; large is hardly smooth. "
        "auto: chosen by cross-validation "
        "of the labels.",
    )

    @property
    def is_tuned(self) -> bool:
        """Whether C or gamma are left to the data."""
        return self.C == "auto" or (self.gamma == "auto" and self.kernel == "rbf")

    def tuning_bytes(self, size: TrainingSize) -> int:
        """Bytes of the held-out scores by which C and gamma are chosen."""
        n_labels = min(size.n_labeled, max(MOST_LABELS, 2 * size.n_classes))
        return _HELD_OUT * n_problems(size.n_classes) * n_labels if self.is_tuned else 0

    @property
    def largest_C(self) -> float:
        """C, or the largest that may be chosen."""
        return LARGEST_WEIGHT if self.C == "auto" else self.C

    def is_flat(self, length: float, weight: float) -> bool:
        """Whether kernel values of documents of this length |x| are so alike that losses of this ``weight`` in all
        hardly move a model.
        """
        if self.kernel != "linear" and isinstance(self.gamma, str):
            return False
        square = length**2 if self.kernel == "linear" or isinstance(self.gamma, str) else self.gamma * length**2
        if self.kernel == "poly" and self.coef0 == 0:
            square **= self.degree
        return MOST_SMOOTHING * weight * square < 0.5


class KernelOptions(KernelChoice):
    """Options of every algorithm that learns an expansion in kernel functions by pairs of multipliers."""

    tolerance: float = Field(
        default=1e-3,
        ge=1e-9,
        le=1,
        description="A convex solve ends when no pair of documents violates the optimality conditions by more.",
    )
    cache_bytes: int = Field(
        default=2**30,
        ge=0,
        description="Most bytes of kernel values kept at a time; a few rows are kept however small it is.",
    )

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """See Options. The objective is ½ |w|² plus losses that weigh C each, or the largest C that may be chosen."""
        return self.is_flat(length, self.largest_C * n_labeled) or self.is_sharp(length)

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the cached kernel rows, of the rows by their columns of all problems that are solved at a time, and
        of the choice of values.
        """
        per_nonzero = _BY_COLUMNS + (0 if self.uses_unlabeled else _SCORED)
        return self.tuning_bytes(size) + self.cached_bytes(size) + size.n_parallel * per_nonzero * size.n_nonzeros

    def cached_bytes(self, size: TrainingSize) -> int:
        """Bytes of the kernel values that are kept."""
        n_points = size.n_documents if self.uses_unlabeled else size.n_labeled
        return min(self.cache_bytes, 4 * n_points**2)

    def memory_remedy(self, size: TrainingSize) -> str:
        """See Options."""
        cached, fewer = self.cached_bytes(size), super().memory_remedy(size)
        return (
            f"lower cache_bytes, since {cached / 2**20:.0f} MiB of it are for kernel values, or {fewer}"
            if cached
            else fewer
        )


class RampOptions(KernelOptions):
    """Options of the SVM with ramp loss."""

    s: float = Field(
        default=-0.2,
        ge=-1e6,
        lt=1,
        allow_inf_nan=False,
        description="A document that scores below s for its class counts no further.",
    )
    start: Literal["zero", "subset"] = Field(
        default="zero",
        description="Begin from the hinge-loss SVM on all labeled documents (zero), or on a part of them, which is "
        "faster (subset).",
    )
    subset_fraction: float = Field(
        default=0.1, gt=0, le=1, description="Share of the labeled documents of each class in that part."
    )
    max_iterations: int = Field(
        default=100, ge=1, le=1_000_000, description="Most convex solves; reaching it is told in the status."
    )

    def cached_bytes(self, size: TrainingSize) -> int:
        """Bytes of the kernel values that are kept, the first part included."""
        if self.start == "zero":
            return super().cached_bytes(size)
        n_part = round(self.subset_fraction * size.n_labeled) + 2
        return super().cached_bytes(size) + min(self.cache_bytes, WIDTH * 4 * n_part**2)


class CccpOptions(KernelOptions, BalancedOptions):
    """Options of the transductive SVM by the concave-convex procedure."""

    uses_unlabeled: ClassVar[bool] = True
    tuning_share: ClassVar[float] = 0.2

    C_u: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Weight of the summed losses of the unlabeled documents; by default labeled and unlabeled weigh "
        "the same in total.",
    )
    s: Clip = Field(
        default=-0.2,
        description="Scores of unlabeled documents between s and −s all cost the same: the loss is flat there.",
    )
    max_iterations: int = Field(
        default=100, ge=1, le=1_000_000, description="Most convex solves; reaching it is told in the status."
    )
