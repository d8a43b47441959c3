"""What can be known to be wrong with a training request before any training: loads without Numba, for the gateway's sake."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from core.errors import Fault, InvalidDocuments, InvalidOption
from core.options.base import BalancedOptions, Options
from core.registry import algorithm as find_algorithm


def check_options(algorithm: str, options: Mapping[str, Any], classes: Sequence[str | int], n_documents: int = 0) -> Options:
    """The parsed options of a request; ``classes`` are the labels of the dataset, sorted, ``n_documents`` is its size.

    Raises UnknownAlgorithm, InvalidOption (naming the field) or InvalidDocuments (fewer than two classes).
    """
    parsed = find_algorithm(algorithm).options.parse(options)
    if len(classes) < 2:
        found = (
            f"all labeled documents are of class {classes[0]!r}: label some of another"
            if classes
            else "no document is labeled: label some of each class"
        )
        raise InvalidDocuments(f"training needs labeled documents of at least two classes; {found}", [Fault("", "label", found)])
    parsed.check_size(n_documents, len(classes))
    if isinstance(parsed, BalancedOptions):
        _check_fractions(parsed, [str(label) for label in classes])
    return parsed


class RequestedFractions(NamedTuple):
    """How the class fractions of a training shall be found."""

    source: Literal["given", "labeled", "estimate"]
    fractions: dict[str, float] | None = None
    """by class, if given"""


def requested_fractions(options: BalancedOptions, classes: Sequence[str | int]) -> RequestedFractions:
    """What the options say of the fractions of these classes, which have passed ``check_options``."""
    chosen = options.positive_fraction if options.class_fractions is None else options.class_fractions
    if isinstance(chosen, str):
        return RequestedFractions(chosen)
    if isinstance(chosen, dict):
        return RequestedFractions("given", {str(label): chosen[str(label)] for label in classes})
    return RequestedFractions("given", {str(classes[0]): 1 - chosen, str(classes[1]): chosen})


def _check_fractions(options: BalancedOptions, classes: Sequence[str]) -> None:
    given = options.class_fractions
    if options.positive_fraction != "estimate" and given is not None:
        raise InvalidOption("class_fractions", "give positive_fraction or class_fractions, not both")
    if not isinstance(options.positive_fraction, str) and len(classes) > 2:
        raise InvalidOption("positive_fraction", f"is for two classes; for these {len(classes)} give class_fractions")
    if not isinstance(given, dict):
        return
    if sorted(given) != sorted(classes):
        raise InvalidOption("class_fractions", f"must name each class once: {', '.join(sorted(classes)[:20])}")
    if abs(sum(given.values()) - 1) > 1e-6:
        raise InvalidOption("class_fractions", f"must sum to 1, not {sum(given.values()):.6g}")
