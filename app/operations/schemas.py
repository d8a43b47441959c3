"""Schemas of liveness and readiness."""

from pydantic import Field

from app.http.schemas import Schema


class Alive(Schema):
    """Liveness of the process."""

    status: str = Field(examples=["live"])


class Ready(Schema):
    """Readiness of the service."""

    status: str = Field(examples=["ready"])
    store: bool
    redis: bool
    workers: int
    """Number of workers that take jobs; while it is 0, jobs wait."""
    workers_starting: int
    """Number of workers that compile or load kernels and do not take jobs yet."""
