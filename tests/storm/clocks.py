"""Clocks of running processes that are set: a library, compiled when it is needed, adds what a file says."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

COMPILER = shutil.which("cc")


class Clocks:
    """The clocks of the processes that have this environment, each with a file of its own in a folder.

    Intervals are measured right whatever a clock says. Without a compiler of C no clock can be set.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "clocks"
        self._folder.mkdir()
        self.environment: Mapping[str, str] = {}
        if COMPILER is not None:
            library, source = folder / "clock.so", Path(__file__).parent / "clock.c"
            subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-Wall", "-o", library, source], check=True)
            self.environment = {"LD_PRELOAD": str(library), "STORM_CLOCKS": str(self._folder)}

    def set(self, pid: int, seconds: int) -> None:
        """Set the clock of a process, and of those that it has forked: so many seconds from the real time."""
        with (self._folder / str(pid)).open("r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))
