"""Parts of the client that is awaited which ``_sync_only`` has otherwise."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

sleep = asyncio.sleep


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function in a thread."""
    return await asyncio.to_thread(function, *arguments)


class AliasesMixin:
    """Nothing: an assignment cannot be awaited."""


class ModelMixin:
    """Nothing: an attribute cannot be awaited."""


class ModelsMixin:
    """Nothing: a list must be awaited before it is shown."""


class DatasetsMixin:
    """Nothing, as above."""


class JobsMixin:
    """Nothing, as above."""
