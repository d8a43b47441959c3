"""What the options of all algorithms have in common."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InvalidOption
from core.numerics.width import WIDTH, most_at_a_time
from core.one_vs_rest import n_problems
from core.spelling import did_you_mean

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-12, 1e9
Weight = Annotated[float, Field(ge=LEAST_WEIGHT, le=LARGEST_WEIGHT, allow_inf_nan=False)]
"""Beyond these bounds sums of squares overflow or vanish before any method is meaningfully different from its limit."""
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Drawn = Literal["unknown", "random", "chosen"]
MOST_SMOOTHING = 10.0
"""cost of a model that scores documents 1, in units of the losses that it spares: beyond, the solution scores all documents alike"""


class TrainingSize(NamedTuple):
    """Size of a training, from which its memory is estimated."""

    n_documents: int
    n_labeled: int
    n_nonzeros: int
    n_features: int
    """number of features that occur"""
    n_classes: int
    n_parts: int = 1
    """number of parts of the documents"""
    n_threads: int = 1
    """number of threads that train"""

    @property
    def n_parallel(self) -> int:
        """Number of two-class problems that are solved at a time."""
        return min(n_problems(self.n_classes), WIDTH)

    @property
    def n_sharing(self) -> int:
        """The same of a method whose problems share passes."""
        return min(n_problems(self.n_classes), most_at_a_time(self.n_documents, self.n_features))


class RequestedFractions(NamedTuple):
    """How a training is to find the class fractions of the unlabeled documents."""

    source: Literal["given", "labeled", "estimate"]
    fractions: dict[str, float] | None = None
    """by class, if given"""
    labels_drawn: Drawn = "unknown"
    """how the labeled documents were drawn, for an estimate"""


class Options(BaseModel):
    """What the options of all algorithms have in common: how they are read, and what they ask of a training."""

    min_classes: ClassVar[int] = 2
    """least number of classes that labels must be of"""
    needs_fractions: ClassVar[bool] = False
    """whether the algorithm needs the class fractions of the unlabeled documents"""
    selects_method: ClassVar[bool] = False
    """whether several methods are compared by cross-validation"""
    estimation_share: ClassVar[float] = 0.8
    """share of the work that an estimate of the class fractions takes, where there is one"""
    rescales_features: ClassVar[bool] = False
    """whether features are brought to one scale where one outweighs the others"""
    holds_rows: ClassVar[bool] = False
    """whether all rows must be in the memory of one process, since other things than passes read them"""
    warm_up_options: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """options that together run all compiled loops of the algorithm"""
    limit_remedy: ClassVar[str] = "raise max_iterations"
    """what lets a solve that ended at its iteration limit converge"""
    one_class_remedy: ClassVar[str] = "try the algorithm auto"
    """what may tell classes apart where the model gives all documents one"""
    range_remedy: ClassVar[str] = "smooth more, as by a lower C"
    """what keeps the numbers of a training within range, where the values of the documents are of a usual size"""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, strict=True)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Options from JSON; raises InvalidOption that names the first wrong field."""
        try:
            return cls.model_validate(dict(given), by_alias=True, by_name=False)
        except ValidationError as error:
            raise _invalid(cls, given, error) from None

    @property
    def estimated(self) -> bool:
        """Whether the class fractions of the unlabeled documents are to be estimated."""
        return False

    @property
    def needs_probabilities(self) -> bool:
        """Whether models are cross-validated so that scores can become probabilities."""
        return False

    @property
    def depends_on_scale(self) -> bool:
        """Whether all values times the same number give another model."""
        return not self.rescales_features

    def hardly_learns(self, length: float, n_labeled: int) -> bool:
        """Whether documents of this length |x| hardly move a model with these options: it scores them all alike, or no two of them alike."""
        return False

    def check_size(self, n_documents: int, n_classes: int) -> None:
        """Raise InvalidOption if a dataset is too large for the algorithm with these options; most take what fits in memory."""

    def check_classes(self, classes: Sequence[str]) -> None:
        """Raise InvalidOption if the options do not fit the classes of a dataset."""

    def requested_fractions(self, classes: Sequence[str | int]) -> RequestedFractions | None:
        """How to find the fractions of these classes, which have passed ``check_classes``; None where they play no part."""
        return None

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes at the peak that only this algorithm holds, beyond the rows and the vectors of the two-class problems."""
        return 0

    def memory_remedy(self, size: TrainingSize) -> str:
        """What makes a training need less memory, as the end of a sentence."""
        return "train on fewer documents"


class SolverOptions(Options):
    """What every algorithm takes that is one solver; auto calibrates without being asked."""

    probabilities: bool = Field(
        default=False,
        description="Learn probabilities too, from what models that were not told a third of the labels make of it: takes about four times as long.",
    )

    @property
    def needs_probabilities(self) -> bool:
        """See Options."""
        return self.probabilities


class BalancedOptions(Options):
    """What every algorithm takes that needs to know how the unlabeled documents are shared among the classes."""

    needs_fractions: ClassVar[bool] = True

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
        "from all documents, so that it may; chosen: otherwise, as by what a model suggests, so that it may not; unknown: as each "
        "document's drawn says and, where that is unknown, too, as far as the shares agree with the documents.",
    )

    @property
    def estimated(self) -> bool:
        """See Options."""
        return self._fractions == "estimate"

    @property
    def _fractions(self) -> float | dict[str, float] | Literal["labeled", "estimate"]:
        return self.positive_fraction if self.class_fractions is None else self.class_fractions

    def check_classes(self, classes: Sequence[str]) -> None:
        """See Options."""
        given = self.class_fractions
        if self.positive_fraction != "estimate" and given is not None:
            raise InvalidOption("class_fractions", "give positive_fraction or class_fractions, not both")
        if not isinstance(self.positive_fraction, str) and len(classes) > 2:
            raise InvalidOption("positive_fraction", f"is for two classes; for these {len(classes)} give class_fractions")
        if not isinstance(given, dict):
            return
        if sorted(given) != sorted(classes):
            raise InvalidOption("class_fractions", f"must name each class once: {', '.join(sorted(classes)[:20])}")
        if abs(sum(given.values()) - 1) > 1e-6:
            raise InvalidOption("class_fractions", f"must sum to 1, not {sum(given.values()):.6g}")

    def requested_fractions(self, classes: Sequence[str | int]) -> RequestedFractions:
        """See Options."""
        fractions = self._fractions
        if isinstance(fractions, str):
            return RequestedFractions(fractions, labels_drawn=self.labels_drawn)
        if isinstance(fractions, dict):
            return RequestedFractions("given", {str(label): fractions[str(label)] for label in classes}, self.labels_drawn)
        return RequestedFractions("given", {str(classes[0]): 1 - fractions, str(classes[1]): fractions}, self.labels_drawn)


def _invalid(cls: type[Options], given: Mapping[str, Any], error: ValidationError) -> InvalidOption:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(_path(first["loc"], given)) or "options"
    if first["type"] == "extra_forbidden":
        known = sorted(info.alias or name for name, info in cls.model_fields.items())
        advice = did_you_mean(str(first["loc"][-1]), known)
        return InvalidOption(field, f"unknown option{advice or ';'} known are {', '.join(known)}")
    return InvalidOption(field, first["msg"])


def _path(places: Sequence[int | str], value: Any) -> Iterator[str]:
    """The keys of what was given that lead to an error; where a field takes several types, Pydantic names the type in between."""
    for place in places:
        if isinstance(value, Mapping) and place in value:
            value = value[place]
            yield str(place)
