"""To which data label spreading, kernel ridge regression and naive Bayes apply, and their memory. Loads nothing, for the estimate of memory."""

_MOST_RESPONSIBILITIES = 20_000_000
"""bound on documents and terms, times classes, for naive Bayes"""

MANY_ROWS = 5_000
"""documents from which on methods are compared by frequent features alone, in a copy of the rows"""
LANDMARKS = 2_000
"""most documents that a model of label spreading keeps"""
MOST_KERNEL_LABELS = 1_000
"""most labels with which kernel ridge regression is tried: each fold takes nine Cholesky factorisations, each of a third of the cube of their number
in floating point operations"""
COARSE_FRACTIONS, FINE_FRACTIONS = 7, 13
"""fractions that the transductive SVM is solved at, at most, and that candidates are compared at whose solutions cost next to nothing"""
_PATHS, _PATH_COPIES, _COMPARED_PATHS = 4, 7, 6
"""paths of a two-class problem, without each fold and with all labels; arrays of the size of one that its evidence takes: measured; and paths without
each fold of two weights of naive Bayes"""
_LEAST_ROWS, _MOST_ROWS, _MOST_VALUES = 15, 10_000, 20_000_000
_DENSE = 0.1
"""share of nonzeros from which on distances are meaningful: texts have far less"""


def candidate_bytes(n_rows: int, n_features: int, n_nonzeros: int, n_classes: int) -> int:
    """Bytes of the candidates of a selection that apply to such rows, beside the SVMs."""
    kernels = 0
    if label_spreading_applies(n_rows, n_features, n_nonzeros):
        kernels = label_spreading_bytes(n_rows, n_features, n_classes) + kernel_ridge_bytes(n_rows, n_classes)
    return kernels + (naive_bayes_bytes(n_rows, n_features, n_classes) if naive_bayes_applies(n_rows, n_features, n_classes) else 0)


def path_fractions(n_rows: int, n_features: int, n_nonzeros: int, n_classes: int) -> int:
    """Number of fractions along the longest paths of a selection over such rows."""
    fine = label_spreading_applies(n_rows, n_features, n_nonzeros) or naive_bayes_applies(n_rows, n_features, n_classes)
    return FINE_FRACTIONS if fine else COARSE_FRACTIONS


def path_bytes(n_labeled: int, n_problems: int, n_fractions: int) -> int:
    """Bytes of the scores of labels along paths over so many fractions, of all problems and folds, and of what the evidence of one problem takes."""
    return 8 * n_fractions * n_labeled * max(_PATHS * n_problems + _PATH_COPIES, _COMPARED_PATHS * n_problems)


def is_dense(n_rows: int, n_features: int, n_nonzeros: int) -> bool:
    """Whether distances between such rows are meaningful."""
    return n_nonzeros >= _DENSE * n_rows * n_features


def label_spreading_applies(n_rows: int, n_features: int, n_nonzeros: int) -> bool:
    """Whether neighbours of such rows are meaningful and can be found in bearable time and memory."""
    bearable = _LEAST_ROWS <= n_rows <= _MOST_ROWS and n_rows * n_features <= _MOST_VALUES
    return bearable and is_dense(n_rows, n_features, n_nonzeros)


def label_spreading_bytes(n_rows: int, n_features: int, n_classes: int) -> int:
    """Bytes of the rows as a dense matrix and its copy, of a block of distances, of the spread labels, and of the kernel matrix of the landmarks."""
    return 8 * n_rows * n_features + (64 << 20) + 8 * 5 * 4 * n_classes * n_rows + 24 * min(n_rows, LANDMARKS) ** 2


def kernel_ridge_bytes(n_rows: int, n_classes: int) -> int:
    """Bytes of four matrices of kernel values, of a block of inner products with its values, and of the scores of four fits, twice at the end."""
    return 32 * min(n_rows, MOST_KERNEL_LABELS) ** 2 + (64 << 20) + 64 * n_classes * n_rows


def naive_bayes_applies(n_rows: int, n_features: int, n_classes: int) -> bool:
    """Whether such rows fit into bearable memory."""
    return n_classes * (n_rows + n_features) <= _MOST_RESPONSIBILITIES


def naive_bayes_bytes(n_rows: int, n_features: int, n_classes: int) -> int:
    """Bytes of logits, responsibilities and their temporaries, and of the parameters of two runs, of which one is at its end."""
    return 8 * n_classes * (7 * n_rows + 4 * n_features)
