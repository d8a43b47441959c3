"""Checks of a training request before any training: loads without Numba, for the gateway's sake."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import Fault, InvalidDocuments
from core.options.base import Options
from core.registry import algorithm as find_algorithm

_NUMBERS = {1: "one class", 2: "two classes"}


def check_options(
    algorithm: str, options: Mapping[str, Any], classes: Sequence[str | int], n_documents: int = 0
) -> Options:
    """The parsed options of a request; ``classes`` are the labels of the dataset, sorted, ``n_documents`` is its size.

    Raises UnknownAlgorithm, InvalidOption (naming the field) or InvalidDocuments (fewer classes than the algorithm
    needs).
    """
    parsed = find_algorithm(algorithm).options.parse(options)
    if len(classes) < parsed.min_classes:
        found = (
            f"all labeled documents are of class {classes[0]!r}: label some of another"
            if classes
            else "no document is labeled: label some of each class"
        )
        raise InvalidDocuments(
            f"training needs labeled documents of at least {_NUMBERS[parsed.min_classes]}; {found}",
            [Fault("", "label", found)],
        )
    parsed.check_size(n_documents, len(classes))
    parsed.check_classes([str(label) for label in classes])
    return parsed
