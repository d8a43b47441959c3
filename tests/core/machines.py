"""Other machines: a module of the tests run as they would, each in a process with settings that make a processor look
like another.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_COMPILED_SECONDS = 280.0
"""seconds in which all have compiled their own loops and answered, on a busy machine"""


def answers_of(module: str, machines: Iterable[tuple[str, Mapping[str, str]]], cwd: Path, *arguments: str) -> list[Any]:
    """The JSON output of the module on each machine, which is a number of threads and an environment.

    None outlasts the call.
    """
    command = [sys.executable, "-W", "ignore", "-m", module]
    running = [
        subprocess.Popen(
            [*command, threads, *arguments], env={**os.environ, **machine}, cwd=cwd, stdout=subprocess.PIPE, text=True
        )
        for threads, machine in machines
    ]
    try:
        return [json.loads(process.communicate(timeout=_COMPILED_SECONDS)[0]) for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()
