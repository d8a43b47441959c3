"""Keys of the store: relative paths of plain segments, so that none can leave the store.

What cannot be read under a key is logged once, counted while it stays so, and forgotten when it was repaired or
removed.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import structlog

from storage.errors import StoreDamaged

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,191}"
_KEY = re.compile(rf"{_SEGMENT}(/{_SEGMENT})*")


class KeyMissing(KeyError):
    """Nothing is stored under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def check_key(key: str) -> str:
    """The key, if it is valid; raises ValueError.

    No segment starts with a dot, so ``..`` and hidden files are out of reach.
    """
    if not is_key(key):
        raise ValueError(f"not a key: {key!r}")
    return key


def keys_among(names: Iterable[str]) -> list[str]:
    """Names that may be segments of keys, sorted: not ``lost+found``, no hidden file, no copy that an editor has left
    as ``1.json~``.
    """
    return sorted({name for name in names if is_key(name)})


def is_key(text: str) -> bool:
    """Whether a text is a valid key."""
    return _KEY.fullmatch(text) is not None


_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Damage:
    """The damaged records and files that this process has come across.

    What lists records leaves them out and goes on with the others.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[StoreDamaged, Callable[[], object]]] = {}
        self._lock = threading.Lock()

    def add(self, error: StoreDamaged, read: Callable[[], object]) -> StoreDamaged:
        """Note a damaged key, and how to ``read`` it again; returns the error, to be raised."""
        with self._lock:
            new = error.key not in self._found
            self._found[error.key] = error, read
        if new:
            _log.error("a record of the store is damaged", key=error.key, error=str(error))
        return error

    def forget(self, key: str) -> None:
        """Note that a key can be read, or is gone. It costs nothing where nothing is damaged."""
        if key in self._found and self._found.pop(key, None) is not None:
            _log.info("a record of the store is damaged no more", key=key)

    @property
    def found(self) -> Mapping[str, str]:
        """The damage of each key."""
        return {key: str(error) for key, (error, _) in list(self._found.items())}

    def check_again(self) -> None:
        """Read the damaged keys again: an operator may have repaired or removed them. Raises StoreUnavailable."""
        for key, (_, read) in list(self._found.items()):
            with suppress(StoreDamaged):
                try:
                    read()
                except KeyMissing:
                    self.forget(key)
