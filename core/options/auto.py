"""The options of ``auto``."""

from typing import ClassVar

from pydantic import Field

from core.options.base import BalancedOptions


class AutoOptions(BalancedOptions):
    """Options of the selection: known class fractions, a budget of seconds, and how exact the model is to be."""

    selects_method: ClassVar[bool] = True
    rescales_features: ClassVar[bool] = True
    limit_remedy: ClassVar[str] = "raise tolerance"
    one_class_remedy: ClassVar[str] = "give class_fractions if they are known"

    seconds: float | None = Field(
        default=None,
        gt=0,
        description="The training ends about so many seconds after the job began: what has not been tried by then "
        "has no part in the model, and the "
        "report says so. The same job may then have another model elsewhere. Without it all methods are tried.",
    )
    tolerance: float = Field(
        default=1e-6,
        gt=0,
        le=1,
        description="The chosen model is solved until its objective lies within this relative distance of the minimum.",
    )
