"""The options of the algorithms that are linear, or learn by coordinates in the space of a kernel."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from core.errors import InvalidOption
from core.one_vs_rest import n_problems
from core.options.base import BalancedOptions, TrainingSize, Weight
from core.options.kernel import KernelFunction
from core.options.linear import AnnealingOptions, LinearOptions, SemiSupervisedOptions, TsvmOptions

_COORDINATE = 12
"""bytes of a coordinate: while it is found, and as the passes read it"""
_BY_COLUMNS = 12
"""bytes a nonzero: the rows by their columns, or as a dense matrix"""
_EDGE = 64
"""bytes of a neighbour: while the edges of both ways are sorted"""
_BELIEFS, _ITERATES = 200, 120
"""bytes of a class: its vectors over documents and their beliefs, and its vectors over features"""
_DISTANCES = 24
"""bytes of the distance of two documents: its square, and while paths are found"""
RHOS = (1.0, 2.0, 4.0, 8.0)
"""that ``auto`` chooses from"""
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
        """Bytes of the coordinates, of the documents that span them, and of the rows by their columns."""
        if self.kernel == "linear":
            return 0
        columns = min(size.n_documents, self.most_columns)
        return columns * (_COORDINATE * size.n_documents + 8 * columns) + _BY_COLUMNS * size.n_nonzeros

    def memory_remedy(self, size: TrainingSize) -> str:
        """See Options."""
        fewer = super().memory_remedy(size)
        return fewer if self.kernel == "linear" else f"lower most_columns, or {fewer}"


class LaplacianOptions(SubspaceOptions):
    """Options of algorithms that also learn from the graph of nearest neighbours."""

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
        """Bytes of the coordinates, and of the graph."""
        graph = size.n_documents * (_EDGE * self.neighbours + _BLOCK * size.n_threads)
        return super().working_bytes(size) + graph + _BY_COLUMNS * size.n_nonzeros


class LaplacianSvmOptions(LaplacianOptions):
    """Options of the Laplacian SVM."""


class LaplacianRlsOptions(LaplacianOptions):
    """Options of Laplacian regularised least squares."""


class CoregularizedOptions(LinearOptions, BalancedOptions):
    """Options of the co-regularised SVM of two views."""

    lambda_views: Weight = Field(
        default=1.0, description="Weight of the squared difference between the views, a mean over unlabeled documents."
    )


class GradientTsvmOptions(SubspaceOptions, SemiSupervisedOptions):
    """Options of the transductive SVM by gradients."""


class S4vmOptions(SubspaceOptions, TsvmOptions):
    """Options of the safe semi-supervised SVM."""

    warm_up_options: ClassVar = ()

    starts: int = Field(
        default=20, ge=1, le=1_000, description="Random directions to look for separators from, besides the SVM."
    )
    separators: int = Field(
        default=10, ge=1, le=1_000, description="Separators of the least objective that may be the right one."
    )
    loss_weight: float = Field(
        default=3.0,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="How much a label counts that is lost to the SVM, against one that is gained.",
    )


class LdsOptions(GradientTsvmOptions):
    """Options of low density separation."""

    kernel: Literal["linear", "rbf", "poly"] = Field(
        default="rbf",
        description="Kernel of the model that scores new documents: x·z, exp(−gamma |x − z|²) or (gamma x·z + "
        "coef0)^degree.",
    )
    rho: Annotated[float, Field(ge=1e-3, le=100, allow_inf_nan=False)] | Literal["auto"] = Field(
        default="auto",
        description="How much longer steps through sparse places are, by the mean distance of a document from its "
        "nearest; auto: of 1, 2, 4 and 8 the one by which labels left out are predicted best.",
    )
    left_out: float = Field(
        default=0.1, ge=1e-6, lt=1, description="Share of the sum of squared distances that coordinates leave out."
    )
    max_documents: int = Field(
        default=3000,
        ge=1,
        le=20_000,
        description="More documents than this are refused: memory grows with their square, time with their cube.",
    )

    @property
    def holds_rows(self) -> bool:
        """See Options: distances are of pairs of rows."""
        return True

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """See Options: coordinates have a mean length of 1."""
        return super().hardly_learns(1.0, n_labeled)

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the coordinates in the space of a kernel, of distances, and of coordinates of each rho."""
        several = len(RHOS) if self.rho == "auto" else 1
        return super().working_bytes(size) + size.n_documents**2 * (_DISTANCES + several * _COORDINATE)

    def check(self, n_documents: int, classes: Sequence[str]) -> None:
        """Raise InvalidOption also for more documents than ``max_documents``."""
        if n_documents > self.max_documents:
            raise InvalidOption(
                "max_documents",
                f"{n_documents:,} documents are more than the {self.max_documents:,} that this option allows; "
                "gradient_tsvm and laplacian_svm learn from as many",
            )
        super().check(n_documents, classes)


class KernelAnnealingOptions(SubspaceOptions, AnnealingOptions):
    """Options of annealing in the space of a kernel."""

    kernel: Literal["linear", "rbf", "poly"] = Field(
        default="rbf", description="x·z, exp(−gamma |x − z|²) or (gamma x·z + coef0)^degree."
    )
    warm_up_options: ClassVar = ()


class PottsOptions(SubspaceOptions, AnnealingOptions):
    """Options of annealing of all classes together."""

    warm_up_options: ClassVar = ()

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the coordinates, and of the beliefs and vectors of all problems: none is solved before others."""
        own = _BELIEFS * size.n_documents + _ITERATES * size.n_features
        return super().working_bytes(size) + n_problems(size.n_classes) * own
