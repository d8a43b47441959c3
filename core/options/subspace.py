"""The options of the algorithms that are linear, or learn by coordinates in the space of a kernel."""

from typing import ClassVar, Literal

from pydantic import Field

from core.options.base import TrainingSize, Weight
from core.options.kernel import KernelFunction
from core.options.linear import AnnealingOptions, LinearOptions, SemiSupervisedOptions

_COORDINATE = 12
"""bytes of a coordinate: while it is found, and as the passes read it"""
_BY_COLUMNS = 12
"""bytes a nonzero: the rows by their columns, or as a dense matrix"""
_EDGE = 64
"""bytes of a neighbour: while the edges of both ways are sorted"""
_BLOCK = 4 * 128
"""bytes of the kernel values of a document that a thread computes at once"""


class SubspaceOptions(LinearOptions, KernelFunction):
    """Options of every algorithm that is linear, or so in the space of a kernel."""

    kernel: Literal["linear", "rbf", "poly"] = Field(
        default="linear", description="x·z, exp(−gamma |x − z|²) or (gamma x·z + coef0)^degree."
    )
    gamma: Weight | Literal["scale", "median"] = Field(
        default="scale",
        description="Factor in the kernel; scale: 1 / (features · variance of all values), median: 1 / (2 · median "
        "distance of two documents ²).",
    )
    most_columns: int = Field(
        default=2000,
        ge=1,
        le=20_000,
        description="Most documents that a model in the space of a kernel keeps: if more would be needed, it leaves "
        "out what these do not span.",
    )

    @property
    def holds_rows(self) -> bool:
        """See Options."""
        return self.kernel != "linear"

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """See Options; with an RBF kernel all documents have length 1."""
        return self.is_sharp(length) or super().hardly_learns(1.0 if self.kernel == "rbf" else length, n_labeled)

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the coordinates, of those of the documents that span them, and of the rows by their columns."""
        if self.kernel == "linear":
            return 0
        columns = min(size.n_documents, self.most_columns)
        return columns * (_COORDINATE * size.n_documents + 8 * columns) + _BY_COLUMNS * size.n_nonzeros

    def memory_remedy(self, size: TrainingSize) -> str:
        """See Options."""
        fewer = super().memory_remedy(size)
        return fewer if self.kernel == "linear" else f"lower most_columns, or {fewer}"


class LaplacianOptions(SubspaceOptions):
    """Options of what also learns from the graph of nearest neighbours."""

    lambda_graph: Weight = Field(
        default=0.1, description="Weight of the roughness of the scores over the graph, a mean over all documents."
    )
    neighbours: int = Field(
        default=7, ge=1, le=1_000, description="Nearest documents that each document is joined to, both ways."
    )
    power: int = Field(
        default=1, ge=1, le=10, description="Power of the graph's Laplacian: larger punishes what is rough far more."
    )

    @property
    def holds_rows(self) -> bool:
        """See Options: distances are of pairs of rows."""
        return True

    def working_bytes(self, size: TrainingSize) -> int:
        """The same, and bytes of the graph."""
        graph = size.n_documents * (_EDGE * self.neighbours + _BLOCK * size.n_threads)
        return super().working_bytes(size) + graph + _BY_COLUMNS * size.n_nonzeros


class LaplacianSvmOptions(LaplacianOptions):
    """Options of the Laplacian SVM."""


class LaplacianRlsOptions(LaplacianOptions):
    """Options of Laplacian regularised least squares."""


class GradientTsvmOptions(SubspaceOptions, SemiSupervisedOptions):
    """Options of the transductive SVM by gradients."""


class KernelAnnealingOptions(SubspaceOptions, AnnealingOptions):
    """Options of annealing in the space of a kernel."""

    kernel: Literal["linear", "rbf", "poly"] = Field(
        default="rbf", description="x·z, exp(−gamma |x − z|²) or (gamma x·z + coef0)^degree."
    )
    warm_up_options: ClassVar = ({}, {"kernel": "poly"})
