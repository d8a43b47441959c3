"""Makes the folder of a process ill, as a network folder may be: loaded by Python itself where ``STORM_ILLNESS`` names
a file that says how.

The file holds a kind (``slow``, ``hangs``, ``fails``) and seconds. Without the file all is well. No code of the service
knows of it.
"""

import errno
import os
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
            time.sleep(float(seconds))
        if kind == "fails":
            raise _unavailable()
        while kind == "hangs" and illness.exists():
            time.sleep(_POLL_SECONDS)
        return call(*given, **named)

    return made_ill


def _unavailable() -> Exception:
    from storage.errors import StoreUnavailable

    return StoreUnavailable(os.strerror(errno.EIO))


if "STORM_ILLNESS" in os.environ:
    from storage.store.folder import FolderStore

    for name in _CALLS:
        setattr(FolderStore, name, _ill(getattr(FolderStore, name), Path(os.environ["STORM_ILLNESS"])))
