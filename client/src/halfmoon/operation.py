"""Which operation of the contract a method calls: a test compares them with the contract."""

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def operation(*names: str) -> Callable[[F], F]:
    """Say that a method calls these operations."""

    def mark(function: F) -> F:
        function.__dict__["operations"] = names
        return function

    return mark
