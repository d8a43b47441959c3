"""Base class of the schemas of the contract, and the schemas that every domain sends."""

from pydantic import BaseModel, ConfigDict, Field

from app.codecs.base import MAX_FAULTS


class Schema(BaseModel):
    """Base class of the objects in the contract. The suffix Out of a name is dropped there: JobOut is Job."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="null")


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
