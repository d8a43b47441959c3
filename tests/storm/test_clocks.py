"""A clock is set while its process runs, and is that of what it forks."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.storm.clocks import COMPILER, Clocks
from tests.there import there

_ASK = """
import os, sys, time
from datetime import datetime
for _ in sys.stdin:
    if os.fork() == 0:
        print(time.time(), datetime.now().timestamp(), time.monotonic(), flush=True)
        os._exit(0)
"""


@pytest.mark.skipif(COMPILER is None, reason="there is no compiler of C")
def test_a_clock_is_set_while_its_process_runs(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path)
    command = [sys.executable, "-c", _ASK]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(clocks.environment), text=True
    ) as asked:
        for off in (0, 90_000, -90_000):
            if off:
                clocks.set(asked.pid, off)
            there(asked.stdin).write("\n")
            there(asked.stdin).flush()
            said = [float(word) for word in there(asked.stdout).readline().split()]
            assert [round((each - time.time() - off) / 1000) for each in said[:2]] == [0, 0]
            assert said[2] == pytest.approx(time.monotonic(), abs=1000)
        there(asked.stdin).close()
