"""The options of each algorithm: frozen, validated, every error naming its field.

``lambda`` is a Python keyword: the field is ``lambda_`` here and ``lambda`` in JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InvalidOption

Weight = Annotated[float, Field(ge=1e-12, le=1e9, allow_inf_nan=False)]
"""Beyond these bounds sums of squares overflow or vanish before any method is meaningfully different from its limit."""
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Drawn = Literal["unknown", "random", "chosen"]


class Options(BaseModel):
    """What the options of all algorithms have in common: how they are read."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, strict=True)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Options from JSON; raises InvalidOption that names the first wrong field."""
        try:
            return cls.model_validate(dict(given), by_alias=True, by_name=False)
        except ValidationError as error:
            raise _invalid(cls, given, error) from None

    def check_size(self, n_documents: int, n_classes: int) -> None:
        """Raise InvalidOption if a dataset is too large for the algorithm, told these options; most take what fits in memory."""


class SolverOptions(Options):
    """What every algorithm takes that is one solver; auto calibrates without being asked."""

    probabilities: bool = Field(
        default=False,
        description="Learn probabilities too, from what models that were not told a third of the labels make of it: takes about four times as long.",
    )


class BalancedOptions(Options):
    """What every algorithm takes that needs to know how the unlabeled documents are shared among the classes."""

    positive_fraction: Fraction | Literal["labeled", "estimate"] = Field(
        default="estimate",
        description="Fraction of the unlabeled documents in the positive class (of two); or, for any number of classes, labeled: "
        "take the shares of the labels; estimate: find the fractions from the documents and their labels.",
    )
    class_fractions: dict[str, Fraction] | Literal["labeled", "estimate"] | None = Field(
        default=None,
        description="Fractions of the unlabeled documents in the classes, summing to 1; labeled or estimate, as above; null: see positive_fraction.",
    )

    labels_drawn: Drawn = Field(
        default="unknown",
        description="How the documents that are labeled were drawn, which tells whether an estimate may go by the shares of the labels: random: "
        "from all documents, so that it may; chosen: otherwise, as by what a model suggests, so that it may not; unknown: unless they are even.",
    )

    @property
    def estimated(self) -> bool:
        """Whether the fractions are to be estimated."""
        return (self.positive_fraction if self.class_fractions is None else self.class_fractions) == "estimate"


class LinearOptions(SolverOptions):
    """What every algorithm of the linear family takes."""

    lambda_: Weight = Field(
        default=1e-3,
        alias="lambda",
        description="Weight of the regulariser λ/2 |w|²; the losses are means, so it does not depend on the number of documents.",
    )
    tolerance: float = Field(
        default=1e-6, gt=0, le=1, description="A solve ends when its objective is certified to lie within this relative distance of the minimum."
    )
    max_iterations: int = Field(default=100, ge=1, le=1_000_000, description="Most Newton steps of one solve; reaching it is told in the status.")


class SemiSupervisedOptions(LinearOptions, BalancedOptions):
    """What the linear algorithms take that learn from unlabeled documents."""

    lambda_u: Weight = Field(default=1.0, description="Weight λ' of the mean loss of the unlabeled documents, against 1 for the labeled.")


class SvmOptions(LinearOptions):
    """Options of the supervised L2-SVM."""


class TsvmOptions(SemiSupervisedOptions):
    """Options of the transductive SVM with multiple switching."""

    max_switches: int | None = Field(
        default=None, ge=1, description="Most label pairs switched before retraining (S in the paper); null: as many as improve."
    )


class AnnealingOptions(SemiSupervisedOptions):
    """Options of deterministic (mean-field) annealing."""

    temperature: Weight = Field(default=10.0, description="Temperature T at the start, in units of lambda_u.")
    cooling: float = Field(default=1.5, gt=1, allow_inf_nan=False, description="T is divided by this after each stage.")
    fixed_temperature: Weight | None = Field(default=None, description="Keep T here, in units of lambda_u, and do not anneal (for the ablation).")


class AutoOptions(BalancedOptions):
    """Options of the selection: what its owner knows of the classes, and how exact the model is to be."""

    tolerance: float = Field(
        default=1e-6, gt=0, le=1, description="The chosen model is solved until its objective lies within this relative distance of the minimum."
    )


class TextOptions(Options):
    """How text becomes terms: what a job may say of it, whatever its algorithm."""

    min_documents: int = Field(default=2, ge=1, le=1_000_000_000, description="A term counts if it occurs in at least so many documents.")
    ngrams: Literal[1, 2] = Field(default=2, description="Most words of a term: 1, single words; 2, pairs of words that follow one another too.")
    max_terms: int = Field(default=500_000, ge=1, le=10_000_000, description="Most terms; beyond, those that occur in most documents are kept.")


class Cuts3vmOptions(SolverOptions, BalancedOptions):
    """Options of the semi-supervised SVM by cutting planes."""

    C: Weight = Field(
        default=1000.0,
        description="Weight of the mean loss of the labeled documents against ½ |w|²; Zhao et al. divide sums by n, so their C_l is C n / l.",
    )
    C_u: Weight | None = Field(
        default=None, description="Weight of the mean loss of the unlabeled documents; by default C. The C_u of Zhao et al. is C_u n / u."
    )
    epsilon: Weight | None = Field(
        default=None,
        description="Most that a constraint may be violated by, in units of the objective; by default 0.005 (C + C_u), at least 1e-9 of that sum.",
    )
    start: Literal["supervised", "random"] = Field(
        default="supervised", description="Begin at the solution for the labeled documents, or in random directions that the job's seed decides."
    )
    restarts: int = Field(default=1, ge=1, le=10_000, description="Random directions to begin in; the end of the least objective is taken.")
    max_iterations: int = Field(default=500, ge=1, le=1_000_000, description="Most planes of one start; reaching it is told in the status.")


def _invalid(cls: type[Options], given: Mapping[str, Any], error: ValidationError) -> InvalidOption:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(_path(first["loc"], given)) or "options"
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(info.alias or name for name, info in cls.model_fields.items()))
        return InvalidOption(field, f"unknown option; known are {known}")
    return InvalidOption(field, first["msg"])


def _path(places: Sequence[int | str], value: Any) -> Iterator[str]:
    """The keys of what was given that lead to an error; where a field takes several types, Pydantic names the type in between."""
    for place in places:
        if isinstance(value, Mapping) and place in value:
            value = value[place]
            yield str(place)
