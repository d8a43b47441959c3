"""Options that all algorithms share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InvalidOption, did_you_mean
from core.numerics.width import WIDTH, most_at_a_time
from core.one_vs_rest import n_problems

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-12, 1e9
Weight = Annotated[float, Field(ge=LEAST_WEIGHT, le=LARGEST_WEIGHT, allow_inf_nan=False)]
"""Beyond these bounds sums of squares overflow or vanish before any method is meaningfully different from its limit."""
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
FractionRange = Annotated[list[Fraction], Field(min_length=2, max_length=2)]
"""the least fraction and the largest"""
Drawn = Literal["unknown", "random", "chosen"]
_SLACK = 1e-6
"""distance from 1 that a sum of fractions may have"""
MOST_SMOOTHING = 10.0
"""cost of a model that scores documents 1, in units of the losses that it spares: beyond, the solution scores all
documents alike"""


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
    several: bool = False
    """whether documents may have several labels"""

    @property
    def n_parallel(self) -> int:
        """Number of two-class problems that are solved at a time."""
        return min(n_problems(self.n_classes), WIDTH)

    @property
    def n_sharing(self) -> int:
        """Number of two-class problems that are solved at a time by a method that shares passes among them."""
        return min(n_problems(self.n_classes), most_at_a_time(self.n_documents, self.n_features))


class RequestedFractions(NamedTuple):
    """How a training is to find the class fractions of the unlabeled documents."""

    source: Literal["given", "labeled", "estimate"]
    fractions: dict[str, float] | None = None
    """by class, if given"""
    labels_drawn: Drawn = "unknown"
    """how the labeled documents were drawn, for an estimate"""
    bounds: dict[str, tuple[float, float]] | None = None
    """by class the least fraction and the largest, for an estimate of which something is known"""


class Options(BaseModel):
    """Base of all options: how they are read, and their demands on a training."""

    min_classes: ClassVar[int] = 2
    """least number of classes that labels must be of"""
    needs_fractions: ClassVar[bool] = False
    """whether the algorithm needs the class fractions of the unlabeled documents"""
    selects_method: ClassVar[bool] = False
    """whether several methods are compared by cross-validation"""
    rescales_features: ClassVar[bool] = False
    """whether features are brought to one scale where one outweighs the others"""
    warm_up_options: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """options that together run all compiled loops of the algorithm which those before it in the registry do not run"""
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
    def holds_rows(self) -> bool:
        """Whether all rows must be in the memory of one process, since other things than passes read them."""
        return False

    @property
    def estimated(self) -> bool:
        """Whether class fractions of the unlabeled documents may have to be estimated."""
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
        """Whether documents of this length |x| hardly move a model with these options: it scores them all alike, or no
        two of them alike.
        """
        return False

    def check(self, n_documents: int, classes: Sequence[str]) -> None:
        """Raise InvalidOption if the options do not fit a dataset of these classes and so many documents: most are
        limited by memory alone.
        """

    def requested_fractions(self, classes: Sequence[str | int]) -> RequestedFractions | None:
        """How to find the fractions of these classes, which have passed ``check``.

        None where they play no part.
        """
        return None

    def working_bytes(self, size: TrainingSize) -> int:
        """Bytes at the peak that only this algorithm holds, beyond the rows and the vectors of the two-class
        problems."""
        return 0

    def memory_remedy(self, size: TrainingSize) -> str:
        """The advice for a training that needs less memory, as the end of a sentence."""
        return "train on fewer documents"


class SolverOptions(Options):
    """Options of every single solver; auto calibrates without being asked."""

    probabilities: bool = Field(
        default=False,
        description="Learn probabilities too, from what models that were not told a third of the labels make of it: "
        "takes about four times as long.",
    )

    @property
    def needs_probabilities(self) -> bool:
        """See Options."""
        return self.probabilities


class BalancedOptions(Options):
    """Options of every algorithm that needs the class fractions of the unlabeled documents."""

    needs_fractions: ClassVar[bool] = True

    positive_fraction: Fraction | Literal["labeled", "estimate"] = Field(
        default="estimate",
        description="Fraction of the unlabeled documents in the positive class (of two); or, for any number of "
        "classes, labeled: "
        "take the shares of the labels; estimate: find the fractions from the documents and their labels.",
    )
    class_fractions: dict[str, Fraction | FractionRange] | Literal["labeled", "estimate"] | None = Field(
        default=None,
        description="Fractions of the unlabeled documents in the classes, summing to 1. A class that is left out is "
        "estimated; one with a range [low, high] is estimated within it. Or labeled or estimate, as above; null: see "
        "positive_fraction.",
    )

    labels_drawn: Drawn = Field(
        default="unknown",
        description="How the documents that are labeled were drawn, which tells whether an estimate may go by the "
        "shares of the labels: random: "
        "from all documents, so that it may; chosen: otherwise, as by what a model suggests, so that it may "
        "not; unknown: as each "
        "document's drawn says and, where that is unknown, too, as far as the shares agree with the documents.",
    )

    @property
    def estimated(self) -> bool:
        """See Options."""
        given = self._fractions
        known = [each for each in given.values() if isinstance(each, float)] if isinstance(given, dict) else [1.0]
        return given == "estimate" or sum(known) < 1 - _SLACK

    @property
    def _fractions(self) -> float | dict[str, float | list[float]] | Literal["labeled", "estimate"]:
        return self.positive_fraction if self.class_fractions is None else self.class_fractions

    def check(self, n_documents: int, classes: Sequence[str]) -> None:
        """See Options."""
        given = self.class_fractions
        if self.positive_fraction != "estimate" and given is not None:
            raise InvalidOption("class_fractions", "give positive_fraction or class_fractions, not both")
        if not isinstance(self.positive_fraction, str) and len(classes) > 2:
            raise InvalidOption(
                "positive_fraction", f"is for two classes; for these {len(classes)} give class_fractions"
            )
        if not isinstance(given, dict):
            return
        if not {*given} <= {*classes}:
            raise InvalidOption("class_fractions", f"must name classes: {', '.join(sorted(classes)[:20])}")
        bounds = _bounds_of(given, classes)
        if any(low > high for low, high in bounds.values()):
            raise InvalidOption("class_fractions", "the first number of a range must be its lower end")
        least, most = (sum(ends) for ends in zip(*bounds.values(), strict=True))
        rest = sorted({*classes} - {*given})
        if rest and 1 - _SLACK < least <= 1 + _SLACK:
            raise InvalidOption("class_fractions", f"leave nothing for the other classes: {', '.join(rest[:20])}")
        if least > 1 + _SLACK or most < 1 - _SLACK:
            raise InvalidOption(
                "class_fractions", f"must sum to 1 over all classes, not {least if least > 1 - _SLACK else most:.6g}"
            )

    def requested_fractions(self, classes: Sequence[str | int]) -> RequestedFractions:
        """See Options."""
        fractions = self._fractions
        if isinstance(fractions, str):
            return RequestedFractions(fractions, labels_drawn=self.labels_drawn)
        if isinstance(fractions, dict):
            bounds = _bounds_of(fractions, [str(label) for label in classes])
            if all(low == high for low, high in bounds.values()):
                return RequestedFractions("given", {name: low for name, (low, _) in bounds.items()}, self.labels_drawn)
            return RequestedFractions("estimate", labels_drawn=self.labels_drawn, bounds=bounds)
        return RequestedFractions(
            "given", {str(classes[0]): 1 - fractions, str(classes[1]): fractions}, self.labels_drawn
        )


def _bounds_of(given: Mapping[str, float | list[float]], classes: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The least fraction and the largest by class: all are possible of a class without a bound."""
    bounds = dict.fromkeys(classes, (0.0, 1.0))
    for name, each in given.items():
        bounds[name] = (each[0], each[1]) if isinstance(each, list) else (each, each)
    return bounds


def _invalid(cls: type[Options], given: Mapping[str, Any], error: ValidationError) -> InvalidOption:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(_path(first["loc"], given)) or "options"
    if first["type"] == "extra_forbidden":
        known = sorted(info.alias or name for name, info in cls.model_fields.items())
        advice = did_you_mean(str(first["loc"][-1]), known)
        return InvalidOption(field, f"unknown option{advice or ';'} known are {', '.join(known)}")
    return InvalidOption(field, first["msg"])


def _path(places: Sequence[int | str], value: Any) -> Iterator[str]:
    """The keys that lead to an error; where a field takes several types, Pydantic names the type in between."""
    for place in places:
        if isinstance(value, Mapping) and place in value:
            value = value[place]
            yield str(place)
