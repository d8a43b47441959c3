"""Calls of a function or a method, noted while it does what it did before."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def noted(patch: pytest.MonkeyPatch, owner: Any, name: str, told: Callable[..., T]) -> list[T]:
    """What is told of the arguments of each call of the function ``name`` of a module, a class or an object, from now
    on.
    """
    found: list[T] = []
    original = getattr(owner, name)

    def call(*arguments: Any, **named: Any) -> Any:
        found.append(told(*arguments, **named))
        return original(*arguments, **named)

    patch.setattr(owner, name, call)
    return found
