"""The algorithms by name, and the checks of a request before training. Solvers are named, not imported, so that reading
the registry costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.errors import Fault, InvalidDocuments, InvalidOption, UnknownAlgorithm, refused
from core.options.auto import AutoOptions
from core.options.base import BalancedOptions, Options
from core.options.clusters import ClustersOptions
from core.options.kernel import CccpOptions, KernelOptions, RampOptions
from core.options.linear import AnnealingOptions, Cuts3vmOptions, SvmOptions, TsvmOptions
from core.options.relaxation import CtsvmOptions
from core.options.subspace import (
    CoregularizedOptions,
    GradientTsvmOptions,
    KernelAnnealingOptions,
    LaplacianRlsOptions,
    LaplacianSvmOptions,
    LdsOptions,
    PottsOptions,
    S4vmOptions,
)


@dataclass(frozen=True)
class Algorithm:
    """One way of training a two-class model."""

    name: str
    title: str
    options: type[Options]
    solver: str
    """``module:function`` of its core.train.Solver"""
    start: Literal["coefficients", "scores"] | None = "coefficients"
    """what of another model its solver can start from"""
    several: bool = False
    """whether it learns several labels of a document"""
    joint: bool = False
    """whether its two-class problems are solved together: ``solver`` then makes the Solver of so many problems"""


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("svm", "L2-SVM, modified finite Newton", SvmOptions, "core.algorithms.svm:svm", several=True),
        Algorithm(
            "tsvm",
            "transductive L2-SVM, multiple switching",
            TsvmOptions,
            "core.algorithms.tsvm:tsvm",
            several=True,
        ),
        Algorithm(
            "da", "deterministic (mean-field) annealing", AnnealingOptions, "core.algorithms.annealing:annealing"
        ),
        Algorithm(
            "cuts3vm",
            "transductive SVM with hinge loss, cutting planes",
            Cuts3vmOptions,
            "core.algorithms.cuts3vm.solver:cuts3vm",
        ),
        Algorithm(
            "kernel_svm",
            "SVM with hinge loss in the space of a kernel",
            KernelOptions,
            "core.algorithms.kernel_svm:kernel_svm",
            start=None,
        ),
        Algorithm(
            "ramp_svm",
            "SVM with ramp loss, concave-convex procedure, kernels",
            RampOptions,
            "core.algorithms.ramp_svm:ramp_svm",
            "scores",
        ),
        Algorithm(
            "cccp_tsvm",
            "transductive SVM, concave-convex procedure, kernels",
            CccpOptions,
            "core.algorithms.cccp_tsvm:cccp_tsvm",
            "scores",
        ),
        Algorithm(
            "ctsvm",
            "transductive SVM, convex relaxation, kernels",
            CtsvmOptions,
            "core.algorithms.ctsvm:ctsvm",
            start=None,
        ),
        Algorithm(
            "gradient_tsvm",
            "transductive SVM with a smooth loss, linear or kernels",
            GradientTsvmOptions,
            "core.algorithms.low_density:gradient_tsvm",
            start=None,
        ),
        Algorithm(
            "coregularized_svm",
            "L2-SVM of two parts that agree on unlabeled documents",
            CoregularizedOptions,
            "core.algorithms.coregularized:coregularized_svm",
            start=None,
        ),
        Algorithm(
            "s4vm",
            "labels that gain over the SVM whichever separator is right, linear or kernels",
            S4vmOptions,
            "core.algorithms.s4vm:s4vm",
            start=None,
        ),
        Algorithm(
            "lds",
            "low density separation: distances along dense places, then gradient_tsvm",
            LdsOptions,
            "core.algorithms.low_density:lds",
            start=None,
        ),
        Algorithm(
            "kernel_da",
            "deterministic annealing, kernels",
            KernelAnnealingOptions,
            "core.algorithms.annealing:kernel_da",
            start=None,
        ),
        Algorithm(
            "potts",
            "deterministic annealing of all classes together, linear or kernels",
            PottsOptions,
            "core.algorithms.potts:Potts",
            start=None,
            joint=True,
        ),
        Algorithm(
            "laplacian_svm",
            "L2-SVM smooth over nearest neighbours, linear or kernels",
            LaplacianSvmOptions,
            "core.algorithms.laplacian:laplacian_svm",
            start=None,
        ),
        Algorithm(
            "laplacian_rls",
            "least squares smooth over nearest neighbours, linear or kernels",
            LaplacianRlsOptions,
            "core.algorithms.laplacian:laplacian_rls",
            start=None,
        ),
    )
}
"""The solvers, by name."""

AUTO = Algorithm(
    "auto", "chooses method, λ and class fractions, and calibrates", AutoOptions, "", start=None, several=True
)
"""No solver: core.selection.auto runs several."""

CLUSTERS = Algorithm("clusters", "a first look without labels: clusters of documents", ClustersOptions, "", start=None)
"""No solver: core.weak_supervision.clusters makes labels, and the svm learns from them."""

OFFERED = {AUTO.name: AUTO, CLUSTERS.name: CLUSTERS, **ALGORITHMS}
"""What a training may ask for."""


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of that name, auto included; raises UnknownAlgorithm with the known ones."""
    try:
        return OFFERED[name]
    except KeyError:
        raise UnknownAlgorithm(name, tuple(OFFERED)) from None


_FEWEST = 3
"""labels of one class from which on some can be left out"""


def with_rest(
    algorithm: str, classes: Sequence[str | int], other: str | int | None, n_labeled: int, n_unlabeled: int
) -> list[str | int]:
    """The classes of a training, sorted: of one class, and of documents without a label, ``auto`` makes two.

    ``other`` names the class of all documents that are not of the labeled one; None: ``other``, of integers 0 (1 beside
    0). Raises InvalidOption for a name that cannot be, and InvalidDocuments for too few labels.
    """
    if algorithm != AUTO.name or len(classes) != 1 or not n_unlabeled:
        if other is None:
            return list(classes)
        needed = "the algorithm auto, labels of one class, and documents without a label"
        raise InvalidOption("other", f"names what is not of the one labeled class: it needs {needed}")
    (label,) = classes
    if other is None:
        other = "other" if isinstance(label, str) else int(label == 0)
    if isinstance(other, str) != isinstance(label, str):
        raise InvalidOption("other", "must be a text where labels are texts, and an integer where they are integers")
    if other == label:
        raise InvalidOption("other", f"{label!r} is the class that is labeled: name the others in another way")
    if n_labeled < _FEWEST:
        raise refused(
            f"{label!r} is the only class, and {n_labeled} of its documents have a label: label {_FEWEST} or more, or "
            "some of another class",
            "label",
        )
    return sorted([label, other], key=lambda each: (str(each), 0) if isinstance(each, str) else ("", each))


_NUMBERS = {1: "one class", 2: "two classes"}


def check_options(
    algorithm: str,
    options: Mapping[str, Any],
    classes: Sequence[str | int],
    n_documents: int = 0,
    *,
    several: bool = False,
) -> Options:
    """The parsed options of a request; ``classes`` are the labels of the dataset, sorted, ``n_documents`` is its size.
    ``several``: whether a document may have several labels.

    Raises UnknownAlgorithm, InvalidOption (naming the field) or InvalidDocuments (fewer classes than the algorithm
    needs).
    """
    parsed = find_algorithm(algorithm).options.parse(options)
    if not parsed.min_classes:
        parsed.check(n_documents, ())
        return parsed
    if several:
        _check_several(algorithm, parsed, classes)
        return parsed
    if len(classes) < parsed.min_classes:
        found = (
            f"{classes[0]!r} is the only class: label some of another"
            if classes
            else "no document is labeled: label some of each class"
        )
        raise InvalidDocuments(
            f"training needs labeled documents of at least {_NUMBERS[parsed.min_classes]}; {found}",
            [Fault("", "label", found)],
        )
    parsed.check(n_documents, [str(label) for label in classes])
    return parsed


def _check_several(name: str, options: Options, classes: Sequence[str | int]) -> None:
    """Raise InvalidOption or InvalidDocuments where no model of several labels can be trained."""
    if not find_algorithm(name).several:
        able = ", ".join(each.name for each in OFFERED.values() if each.several)
        raise InvalidOption(
            "algorithm", f"{name} learns one label a document; of algorithms for several there are {able}"
        )
    if not classes:
        raise refused("no label applies to any document, and training needs some: give some documents labels", "labels")
    if isinstance(options, BalancedOptions):
        requested = options.requested_fractions(classes)
        if requested.source == "given" or requested.bounds is not None:
            field = "positive_fraction" if options.class_fractions is None else "class_fractions"
            raise InvalidOption(
                field, "is for documents of one label; leave it out, and the frequency of each label is estimated"
            )
