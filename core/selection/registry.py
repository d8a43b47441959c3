"""The methods that ``auto`` tries beside the supervised and the transductive SVM: where each applies, and its memory.

What tries them is named, not imported, so that the gateway can estimate the memory of a training.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from core.documents.term_weights import distances_apply
from core.options.base import TrainingSize

MANY_ROWS = 5_000
"""documents from which on methods are compared by frequent features alone, in a copy of the rows"""
LANDMARKS = 2_000
"""most documents that a model of scores keeps that are not linear"""
MOST_KERNEL_LABELS = 1_000
"""most labels with which kernel ridge regression is tried: each fold takes nine Cholesky factorisations, each of a
third of the cube of their number in floating point operations"""
_MOST_RESPONSIBILITIES = 20_000_000
"""bound on documents and terms, times classes, for naive Bayes"""
_FITS, _EVIDENCE = 12, 80
"""scores of a label that are held at a time: by supervised SVMs of each class, of three folds and four λ, and at the
fractions of two classes that are tried, in several copies: measured"""
_LEAST_ROWS, _MOST_ROWS, _MOST_VALUES = 15, 10_000, 20_000_000


class Method(NamedTuple):
    """A method that ``auto`` may try: its names, the sizes it applies to, and its memory."""

    key: str
    """its name in reports, traces and measurements"""
    title: str
    """its name in words"""
    trial: str
    """``module:function``; the function takes this line and a core.selection.candidates.Trial, and returns a Candidate,
    or None where the values of the documents do not suit it"""
    applies: Callable[[TrainingSize], bool]
    """whether it is tried on documents of this size"""
    memory: Callable[[TrainingSize], int]
    """bytes that it takes then"""
    purposes: Mapping[str, tuple[str, str]] = {}
    """words of the phases of its own, as in core.phases.PURPOSES"""


def candidate_bytes(size: TrainingSize) -> int:
    """Bytes of the methods that apply to documents of this size."""
    return sum(method.memory(size) for method in METHODS.values() if method.applies(size))


def left_out_bytes(n_labeled: int, n_classes: int) -> int:
    """Bytes of the scores of labels by the fits that are compared, and of the evidence of two classes."""
    return 8 * n_labeled * (_FITS * n_classes + _EVIDENCE * (n_classes == 2))


def _neighbours_apply(size: TrainingSize) -> bool:
    """Whether distances are meaningful, and neighbours can be found in bearable time and memory."""
    n_rows, n_features = size.n_documents, size.n_features
    bearable = _LEAST_ROWS <= n_rows <= _MOST_ROWS and n_rows * n_features <= _MOST_VALUES
    return bearable and distances_apply(n_rows, n_features, size.n_nonzeros)


def _label_spreading_bytes(size: TrainingSize) -> int:
    """Bytes of the dense rows, their copy and the score model's copy, a block of distances, the spread labels, and the
    kernel matrix of the landmarks.
    """
    n_rows = size.n_documents
    spread = 8 * 5 * 4 * size.n_classes * n_rows
    return 12 * n_rows * size.n_features + (64 << 20) + spread + 24 * min(n_rows, LANDMARKS) ** 2


def _kernel_ridge_bytes(size: TrainingSize) -> int:
    """Four matrices of kernel values, a block of inner products with its values, and the scores of four fits, twice at
    the end.
    """
    n_rows = size.n_documents
    return 32 * min(n_rows, MOST_KERNEL_LABELS) ** 2 + (64 << 20) + 64 * size.n_classes * n_rows


def densities_apply(size: TrainingSize) -> bool:
    """Whether the densities of all classes fit into memory."""
    return size.n_classes * (size.n_documents + size.n_features) <= _MOST_RESPONSIBILITIES


METHODS = {
    method.key: method
    for method in (
        Method(
            "label_spreading",
            "label spreading",
            "core.selection.methods.label_spreading:try_label_spreading",
            _neighbours_apply,
            _label_spreading_bytes,
        ),
        Method(
            "kernel_ridge",
            "kernel ridge regression",
            "core.selection.methods.kernel_ridge:try_kernel_ridge",
            lambda size: size.n_labeled <= MOST_KERNEL_LABELS and _neighbours_apply(size),
            _kernel_ridge_bytes,
        ),
        Method(
            "naive_bayes",
            "naive Bayes",
            "core.selection.methods.naive_bayes:try_naive_bayes",
            densities_apply,
            # logits, responsibilities and their temporaries, and the parameters of two runs, one of them at its end
            lambda size: 8 * size.n_classes * (7 * size.n_documents + 4 * size.n_features),
            {"naive_bayes/weight": ("unlabeled documents with weight {:g}", ", fold {}")},
        ),
    )
}
"""In the order in which they are tried."""
