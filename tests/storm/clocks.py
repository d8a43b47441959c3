"""Clocks of running processes that are set, by the library of Debian's package libfaketime."""

import os
from collections.abc import Mapping
from pathlib import Path

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
HOOKS = Path(__file__).parent / "hooks"
"""Folder of what Python loads by itself in processes of a storm."""
HOOKED = {"PYTHONPATH": os.pathsep.join([str(HOOKS), os.getcwd()])}


class Clocks:
    """The clocks of the processes that have this environment, each with a file of its own in a folder.

    Intervals are measured right whatever a clock says. Without the library no clock can be set.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.environment: Mapping[str, str] = {}
        if LIBRARY.exists():
            self.environment = {
                **HOOKED,
                "LD_PRELOAD": str(LIBRARY),
                "STORM_CLOCKS": str(folder),
                # until a process has its own file
                "FAKETIME_TIMESTAMP_FILE": str(folder / "none"),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": "1",
            }

    def set(self, pid: int, seconds: int) -> None:
        """Set the clock of a Python process, and of processes that it has begun: so many seconds from the real time."""
        temporary = self._folder / "new"
        temporary.write_text(f"{seconds:+d}\n")
        temporary.rename(self._folder / str(pid))
