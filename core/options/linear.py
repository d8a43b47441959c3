"""The options of the linear family.

``lambda`` is a Python keyword: the field is ``lambda_`` here and ``lambda`` in JSON.
"""

from typing import ClassVar

from pydantic import Field

from core.options.base import MOST_SMOOTHING, BalancedOptions, SolverOptions, Weight


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
