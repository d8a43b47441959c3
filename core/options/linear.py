"""The options of the linear family, CutS3VM included.

``lambda`` is a Python keyword: the field is ``lambda_`` here and ``lambda`` in JSON.
"""

from typing import ClassVar, Literal

from pydantic import Field

from core.numerics.width import WIDTH
from core.options.base import MOST_SMOOTHING, BalancedOptions, SolverOptions, TrainingSize, Weight


class LinearOptions(SolverOptions):
    """Options of every algorithm of the linear family."""

    lambda_: Weight = Field(
        default=1e-3,
        alias="lambda",
        description="Weight of the regulariser λ/2 |w|²; the losses are means, so it does not depend on the number "
        "of documents.",
    )
    tolerance: float = Field(
        default=1e-6,
        gt=0,
        le=1,
        description="A solve ends when its objective is certified to lie within this relative distance of the minimum.",
    )
    max_iterations: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="Most Newton steps of one solve; reaching it is told in the status.",
    )

    limit_remedy: ClassVar[str] = "raise max_iterations or lambda"
    one_class_remedy: ClassVar[str] = "try a smaller lambda or the algorithm auto"
    range_remedy: ClassVar[str] = "raise lambda"

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """See Options: by λ/2 |w|² against a mean loss of ½, for a w that scores documents 1."""
        return self.lambda_ > MOST_SMOOTHING * length**2


class SemiSupervisedOptions(LinearOptions, BalancedOptions):
    """Options of the linear algorithms that learn from unlabeled documents."""

    lambda_u: Weight = Field(
        default=1.0, description="Weight λ' of the mean loss of the unlabeled documents, against 1 for the labeled."
    )


class SvmOptions(LinearOptions):
    """Options of the supervised L2-SVM."""


class TsvmOptions(SemiSupervisedOptions):
    """Options of the transductive SVM with multiple switching."""

    max_switches: int | None = Field(
        default=None,
        ge=1,
        description="Most label pairs switched before retraining (S in the paper); null: as many as improve.",
    )


class AnnealingOptions(SemiSupervisedOptions):
    """Options of deterministic (mean-field) annealing."""

    temperature: Weight = Field(default=10.0, description="Temperature T at the start, in units of lambda_u.")
    cooling: float = Field(default=1.5, gt=1, allow_inf_nan=False, description="T is divided by this after each stage.")
    fixed_temperature: Weight | None = Field(
        default=None, description="Keep T here, in units of lambda_u, and do not anneal (for the ablation)."
    )
    max_alternations: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Most alternations of labels and model at one temperature; reaching it at the last is told in "
        "the status.",
    )

    limit_remedy: ClassVar[str] = "raise max_alternations, max_iterations or lambda"


_PLANES = 64
"""planes of one two-class problem: more than half as many, in arrays that double as they grow"""


class Cuts3vmOptions(SolverOptions, BalancedOptions):
    """Options of the semi-supervised SVM by cutting planes."""

    C: Weight = Field(
        default=1000.0,
        description="Weight of the mean loss of the labeled documents against ½ |w|²; Zhao et al. divide sums by n, "
        "so their C_l is C n / l.",
    )
    C_u: Weight | None = Field(
        default=None,
        description="Weight of the mean loss of the unlabeled documents; by default C. The C_u of Zhao et al. is C_u "
        "n / u.",
    )
    epsilon: Weight | None = Field(
        default=None,
        description="Most that a constraint may be violated by, in units of the objective; by default 0.005 (C + "
        "C_u), at least 1e-9 of that sum.",
    )
    start: Literal["supervised", "random"] = Field(
        default="supervised",
        description="Begin at the solution for the labeled documents, or in random directions that the job's seed "
        "decides.",
    )
    restarts: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Random directions to begin in; the end of the least objective is taken.",
    )
    max_iterations: int = Field(
        default=500, ge=1, le=1_000_000, description="Most planes of one start; reaching it is told in the status."
    )

    one_class_remedy: ClassVar[str] = "try a larger C or the algorithm auto"

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """See Options: by ½ |w|² against a mean loss of C."""
        return MOST_SMOOTHING * self.C * length**2 < 0.5

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes of the planes, and of the rows on each side of them, of all problems that are solved at a time; of the
        planes that are linearised together."""
        planes = _PLANES * (8 * size.n_features + size.n_documents // 8)
        return size.n_sharing * (planes + WIDTH * 8 * (size.n_documents + size.n_features))
