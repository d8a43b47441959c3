"""A thread that runs beside a block of code."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class BackgroundThread(ABC):
    """A context manager: its thread runs while the block is entered."""

    def __init__(self, name: str, patience: float | None = None) -> None:
        """At the end of the block the thread is waited for ``patience`` seconds at most; None: until it has ended."""
        self._done = threading.Event()
        self._patience = patience
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(self._patience)

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_done`` is set."""
