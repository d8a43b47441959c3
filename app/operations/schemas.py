"""Health by the names of the contract."""

from pydantic import Field

from app.http.schemas import Schema


class Alive(Schema):
    """The process answers."""

    status: str = Field(examples=["live"])


class Ready(Schema):
    """The service can take work."""

    status: str = Field(examples=["ready"])
    store: bool
    redis: bool
    workers: int
    """workers that take jobs; while there is none, jobs wait"""
    workers_starting: int
    """workers that compile or load the kernels, and do not take jobs yet"""
