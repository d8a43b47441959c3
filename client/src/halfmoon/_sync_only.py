"""What only the client that waits has: methods that look like attributes."""

import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar

T = TypeVar("T")

sleep = time.sleep


def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function."""
    return function(*arguments)


class AliasesMixin(MutableMapping[str, int]):
    """Aliases as a mapping: ``model.aliases["live"] = 3``."""

    def __getitem__(self, alias: str) -> int:
        found: dict[str, int] = self.all()  # type: ignore[attr-defined]
        return found[alias]

    def __setitem__(self, alias: str, version: int) -> None:
        self.set(alias, version)  # type: ignore[attr-defined]

    def __delitem__(self, alias: str) -> None:
        self.delete(alias)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.all()))  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(dict(self.all()))  # type: ignore[attr-defined]


class ModelMixin:
    """The number of the version to which a reference refers now."""

    @property
    def version(self) -> int:
        """Number of the version: of the reference, of its alias, or of the version that is served."""
        number: int = self.number()  # type: ignore[attr-defined]
        return number
