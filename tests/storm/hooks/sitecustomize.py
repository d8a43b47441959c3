"""Makes the folder of a process ill, as a network folder may be, and gives its clock a file by which it is set: loaded
by Python itself.

``STORM_ILLNESS`` names a file with a kind (``slow``, ``hangs``, ``fails``) and seconds. Without the file all is well.
``STORM_CLOCKS`` names a folder, in which libfaketime reads the file named as the process. No code of the service knows
of it.
"""

import errno
import os
import select
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

_CALLS = ("create", "replace", "read", "exists", "children", "delete", "upload", "local")
_POLL_SECONDS = 0.05


def _ill(call: Callable[..., Any], illness: Path) -> Callable[..., Any]:
    @wraps(call)
    def made_ill(*given: Any, **named: Any) -> Any:
        try:
            kind, seconds = illness.read_text().split()
        except OSError:
            return call(*given, **named)
        if kind == "slow":
            _sleep(float(seconds))
        if kind == "fails":
            raise _unavailable()
        while kind == "hangs" and illness.exists():
            _sleep(_POLL_SECONDS)
        return call(*given, **named)

    return made_ill


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


def _unavailable() -> Exception:
    from storage.errors import StoreUnavailable

    return StoreUnavailable(os.strerror(errno.EIO))


if "STORM_CLOCKS" in os.environ:
    os.environ["FAKETIME_TIMESTAMP_FILE"] = f"{os.environ['STORM_CLOCKS']}/{os.getpid()}"
    # the original fails with EINVAL where libfaketime sets the clock of the process
    setattr(time, "sleep", _sleep)  # noqa: B010
if "STORM_ILLNESS" in os.environ:
    from storage.store.folder import FolderStore

    for name in _CALLS:
        setattr(FolderStore, name, _ill(getattr(FolderStore, name), Path(os.environ["STORM_ILLNESS"])))
