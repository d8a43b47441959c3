"""What a gateway does beside answering: a thread that looks for lost jobs every second."""

import threading
from types import TracebackType
from typing import Self

import structlog

from workers.errors import Unavailable
from workers.reconcile import Reconciler

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Rounds:
    """Calls the reconciler again and again while its block is entered; nothing that fails in one round keeps the next from coming."""

    def __init__(self, reconciler: Reconciler, seconds: float) -> None:
        self._reconciler = reconciler
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconcile", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        away = False
        while not self._stop.wait(self._seconds):
            try:
                self._reconciler.round()
                away = False
            except Unavailable as error:
                if not away:
                    _log.warning("cannot look for lost jobs", error=str(error))
                away = True
            except Exception:
                _log.exception("looking for lost jobs failed")
