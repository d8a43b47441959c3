"""Objects of the contract that every domain sends."""

from pydantic import BaseModel, ConfigDict, Field

from app.codecs.base import MAX_FAULTS


class Out(BaseModel):
    """Something that is sent."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="null")


class Fault(Out):
    """One thing that is wrong with one document or field."""

    document: str
    """its id, or its position; empty where it is not of one document"""
    field: str
    detail: str


class ProblemOut(Out):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = Field(default=[], max_length=MAX_FAULTS)
