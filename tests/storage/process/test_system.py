"""What a process asks of the system."""

import subprocess
import sys


def test_freed_memory_goes_back_to_the_system() -> None:
    """As the periodic task of a gateway gives it back after a large upload."""
    subprocess.run(
        [
            sys.executable,
            "-c",
            """
import gc
import sys
import psutil
from storage.process.system import release_memory
gc.set_threshold(1_000_000)  # as a gateway, which seldom looks for garbage
blocks = [bytes(2000) for _ in range(100_000)]
blocks.append(blocks)
last = bytes(2000)  # the heap ends with it, and so does not shrink by itself
del blocks
before = psutil.Process().memory_info().rss
release_memory()
assert before - psutil.Process().memory_info().rss > 100 << 20 or sys.platform != "linux"
""",
        ],
        check=True,
    )
