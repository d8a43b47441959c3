"""The options of ``clusters``."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from core.errors import InvalidOption
from core.options.base import Options, TrainingSize

COORDINATES = 20
"""coordinates of a document, in which clusters are looked for first"""
_COPIES, _VECTOR = 16, 190
"""bytes a nonzero of the copies of the rows, and bytes of the vectors of one cluster by row and feature"""


class ClustersOptions(Options):
    """Options of clusters: how many there are to be."""

    min_classes: ClassVar[int] = 0
    limit_remedy: ClassVar[str] = "ask for fewer clusters"

    n_clusters: int = Field(
        default=8, ge=2, le=100, description="Number of clusters; fewer are found where documents are too much alike."
    )

    @property
    def needs_probabilities(self) -> bool:
        """See Options: the model that tells clusters apart is calibrated."""
        return True

    def check(self, n_documents: int, classes: Sequence[str]) -> None:
        """See Options."""
        if n_documents < self.n_clusters:
            raise InvalidOption("n_clusters", f"must be at most {n_documents}, the number of documents")

    def working_bytes(self, size: TrainingSize) -> int:
        """See Options."""
        vectors = 8 * COORDINATES + _VECTOR * self.n_clusters
        return _COPIES * size.n_nonzeros + vectors * (size.n_documents + size.n_features)
