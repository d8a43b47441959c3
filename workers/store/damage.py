"""What of a store cannot be read: each record is logged once, counted while it stays so, and forgotten when it was repaired or removed."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from workers.errors import StoreDamaged
from workers.store.keys import KeyMissing

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Damage:
    """The damaged records and files that this process has come across. What lists records leaves them out and goes on with the others."""

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
        """What is wrong with each damaged key."""
        return {key: str(error) for key, (error, _) in list(self._found.items())}

    def check_again(self) -> None:
        """Read again what was damaged: an operator may have repaired or removed it. Raises StoreUnavailable."""
        for key, (_, read) in list(self._found.items()):
            with suppress(StoreDamaged):
                try:
                    read()
                except KeyMissing:
                    self.forget(key)
