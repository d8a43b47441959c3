"""How much ridge regression of several labels takes, at most."""

from core.options.base import TrainingSize

N_DIRECTIONS = 128
"""directions of documents that are found"""
MOST_ROWS = 1 << 14
"""unlabeled documents that they are taken from"""
MOST_LABELED = 2560
"""labeled documents of one factorisation: all that are tried take some 20 seconds"""


def ridge_bytes(size: TrainingSize) -> int:
    """Bytes of the directions, twice as sums of rows and as their products, of matrices of pairs of labeled documents,
    and of those of labeled documents and labels: of two solutions, and of products with names.
    """
    n_labeled = min(size.n_labeled, MOST_LABELED)
    pairs = n_labeled * (48 * n_labeled + 64 * size.n_classes)
    return 32 * N_DIRECTIONS * min(size.n_documents, MOST_ROWS + n_labeled) + pairs
