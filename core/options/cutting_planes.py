"""The options of CutS3VM."""

from typing import ClassVar, Literal

from pydantic import Field

from core.numerics.width import WIDTH
from core.options.base import MOST_SMOOTHING, BalancedOptions, SolverOptions, TrainingSize, Weight

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
