"""Base class of the schemas of the contract, and the schemas that every domain sends; lists, their
pages and the damaged records that they leave out.
"""

import re
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from app.codecs.base import MAX_FAULTS
from storage.names import NAME
from storage.store.keys import Damage


class Schema(BaseModel):
    """Base class of the objects in the contract. The suffix Out of a name is dropped there: JobOut is Job."""

    # a gateway starts sooner where the first who needs a validator builds it
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="null", defer_build=True)


class RecordSchema(Schema):
    """Base class of the answers that have the fields of a record. All of them are sent, whatever the record lacks."""

    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)


class Page(Schema):
    """A page of a list."""

    next_cursor: str | None
    """Value of ``cursor`` for the next page; null on the last page."""
    warnings: list[str] = Field(
        examples=[
            ["1 damaged record is left out: datasets/ds-06h0/manifest.json; `halfmoon doctor` says what is wrong"]
        ]
    )
    """What the list leaves out, because it is damaged."""


class FaultOut(Schema):
    """A fault of one document or field."""

    document: str
    """Id of the document, or its position; empty if the fault is not of one document."""
    field: str
    detail: str


class ProblemOut(Schema):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FaultOut] = Field(default=[], max_length=MAX_FAULTS)


PageSize = Annotated[int, Query(ge=1, le=500, description="Most entries of a page.")]
Cursor = Annotated[str | None, Query(pattern=f"^{NAME}$", description="`next_cursor` of the page before.")]
"""Cursor of a list: the id or name that ends the page before."""
Position = Annotated[str | None, Query(pattern="^(0|[1-9][0-9]{0,9})$", description="`next` of the page before.")]
"""Cursor of documents: the position that ends the page before."""
_MOST_NAMED = 10


def left_out(damage: Damage, pattern: str) -> list[str]:
    """A warning about damaged records with keys of this pattern, as far as this process knows them; none if all can be
    read.
    """
    keys = sorted(key for key in damage.found if re.fullmatch(pattern, key))
    if not keys:
        return []
    count = "1 damaged record is" if len(keys) == 1 else f"{len(keys)} damaged records are"
    more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
    return [f"{count} left out: {', '.join(keys[:_MOST_NAMED])}{more}; `halfmoon doctor` says what is wrong"]
