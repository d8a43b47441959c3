"""The options of the convex relaxation."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from core.errors import InvalidOption
from core.options.base import BalancedOptions, TrainingSize, Weight
from core.options.kernel import KernelChoice

_MATRICES = 16
"""matrices of float64 that one two-class problem holds at its peak"""


class CtsvmOptions(KernelChoice, BalancedOptions):
    """Options of the transductive SVM by convex relaxation."""

    uses_unlabeled: ClassVar[bool] = True
    weight_unit: ClassVar[float] = 2.0
    warm_up_options: ClassVar = ()
    tuning_share: ClassVar[float] = 0.2

    C: Weight | Literal["auto"] = Field(
        default="auto",
        description="Weight of the summed losses of the labeled documents against |w|²: twice that of kernel_svm. "
        "auto: chosen by cross-validation "
        "of the labels with kernel_svm.",
    )
    C_u: Weight | None = Field(
        default=None, description="Weight of the summed losses of the unlabeled documents; by default C."
    )
    hard_margin: bool = Field(default=False, description="Allow no losses at all, whatever C and C_u.")
    epsilon: Annotated[float, Field(ge=1e-6, le=1e6)] | None = Field(
        default=0.01,
        description="How far the mean score of the unlabeled documents may lie from that of the labeled ones; null: "
        "anywhere.",
    )
    regularisation: float = Field(
        default=1e-3,
        ge=1e-6,
        le=1e6,
        description="Added to the diagonal of the kernel matrix, in units of its mean: without it a singular one has "
        "no inverse.",
    )
    bias: float = Field(
        default=1.0,
        ge=0,
        le=1e3,
        description="Value of a constant feature, whose weight is regularised; 0: no bias. With one that is free the "
        "relaxation would be void.",
    )
    tolerance: float = Field(
        default=1e-5,
        ge=1e-9,
        le=1,
        description="Training ends when the duality gap is this share of the bound, certified.",
    )
    max_iterations: int = Field(
        default=100, ge=1, le=10_000, description="Most Newton steps; reaching it is told in the status."
    )
    max_documents: int = Field(
        default=3000,
        ge=1,
        le=20_000,
        description="More documents than this are refused: memory grows with their square, time with their cube.",
    )

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """See Options: by |w|² against losses of C each, or hard margins."""
        return (not self.hard_margin and self.is_flat(length, 0.5 * self.largest_C * n_labeled)) or self.is_sharp(
            length
        )

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the dense matrices of documents × documents that are held at a time; the classes share the kernel
        matrix.
        """
        return self.tuning_bytes(size) + size.n_documents**2 * (8 * _MATRICES * size.n_parallel + 4)

    def check(self, n_documents: int, classes: Sequence[str]) -> None:
        """Raise InvalidOption also for more documents than ``max_documents``."""
        if n_documents <= self.max_documents:
            super().check(n_documents, classes)
            return
        size = TrainingSize(n_documents, n_documents, 0, 0, len(classes))
        raise InvalidOption(
            "max_documents",
            f"{n_documents:,} documents are more than the {self.max_documents:,} that this option allows: ctsvm "
            "would need about "
            f"{self.working_bytes(size) / 1e6:,.0f} MB for dense matrices of documents × documents; "
            "tsvm, da, cuts3vm and cccp_tsvm learn from as many",
        )
