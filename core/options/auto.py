"""The options of ``auto``, and what its ridge regression of several labels takes at most."""

from typing import ClassVar

from pydantic import Field

from core.options.base import BalancedOptions, TrainingSize

N_DIRECTIONS = 128
"""directions of documents that are found"""
MOST_ROWS = 1 << 14
"""unlabeled documents that they are taken from"""
MOST_LABELED = 2560
"""labeled documents of one factorisation: all that are tried take some 20 seconds"""


class AutoOptions(BalancedOptions):
    """Options of the selection: known class fractions, a budget of seconds, and how exact the model is to be."""

    selects_method: ClassVar[bool] = True
    rescales_features: ClassVar[bool] = True
    limit_remedy: ClassVar[str] = "raise tolerance"
    one_class_remedy: ClassVar[str] = "give class_fractions if they are known"

    seconds: float | None = Field(
        default=None,
        gt=0,
        description="The training ends about so many seconds after the job began: what has not been tried by then "
        "has no part in the model, and the "
        "report says so. The same job may then have another model elsewhere. Without it all methods are tried.",
    )
    tolerance: float = Field(
        default=1e-6,
        gt=0,
        le=1,
        description="The chosen model is solved until its objective lies within this relative distance of the minimum.",
    )


def ridge_bytes(size: TrainingSize) -> int:
    """Most bytes of ridge regression of several labels: of the directions, twice as sums of rows and as their products,
    of matrices of pairs of labeled documents, and of those of labeled documents and labels: of two solutions, and of
    products with names.
    """
    n_labeled = min(size.n_labeled, MOST_LABELED)
    pairs = n_labeled * (48 * n_labeled + 64 * size.n_classes)
    return 32 * N_DIRECTIONS * min(size.n_documents, MOST_ROWS + n_labeled) + pairs
