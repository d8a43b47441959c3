"""Calls of a function or a method, which does what it did before: they are noted, or something happens meanwhile."""

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


def meanwhile(
    patch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    act: Callable[..., object],
    *,
    where: Callable[..., bool] = lambda *_: True,
    after: bool = False,
) -> None:
    """Let ``act`` happen just before (or after) the first call of the function ``name`` of a module, a class or an
    object to whose arguments ``where`` applies.
    """
    original = getattr(owner, name)
    left = [act]

    def call(*arguments: Any, **named: Any) -> Any:
        due = left.pop() if left and where(*arguments, **named) else None
        if due is not None and not after:
            due()
        answer = original(*arguments, **named)
        if due is not None and after:
            due()
        return answer

    patch.setattr(owner, name, call)


def ending(suffix: str) -> Callable[..., bool]:
    """Whether the key of a call of the store has this ending."""
    return lambda store, key, *_: key.endswith(suffix)
