"""The threads of one training: calls of compiled, GIL-free loops side by side."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait

from threadpoolctl import get_cached_controller

from core.progress import Checkpoint

Work = Callable[[], None]

_PATIENCE = 0.05
"""seconds between two calls while others work"""


def available_processors() -> int:
    """Number of processors that this process may use; of a Mac, which cannot tell, of the machine."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    else:
        return os.cpu_count() or 1


class Threads:
    """``count`` threads, the calling one among them; to be closed."""

    def __init__(self, count: int | None) -> None:
        self.count = count or available_processors()
        self._executor = ThreadPoolExecutor(self.count - 1) if self.count > 1 else None
        # BLAS threads go on spinning after a dot product and would take the core that the next pass needs: measured,
        # twice the time. So do those of NumPy's BLAS and of SciPy's, which are two, when calls of both take turns on
        # dense matrices: even of one thread. The libraries are looked for again only when a module has been imported
        # since: that takes milliseconds, and a training asks for each fold.
        self._blas = get_cached_controller().limit(limits=1, user_api="blas")

    def close(self) -> None:
        """End them."""
        if self._executor:
            self._executor.shutdown()
        self._blas.restore_original_limits()

    def side_by_side(self, works: Iterable[Work], checkpoint: Checkpoint | None = None) -> None:
        """Call all of these, as many at once as there are threads; an error of one is raised when the others under way
        have ended.

        The calling thread calls ``checkpoint`` after each that it has done itself, and now and then while it waits for
        others; what that raises is raised in the same way.
        """
        waiting = deque(works)
        others = (
            [self._executor.submit(_drain, waiting) for _ in range(min(self.count, len(waiting)) - 1)]
            if self._executor
            else []
        )
        try:
            _drain(waiting, checkpoint)
            while checkpoint and others and wait(others, _PATIENCE).not_done:
                checkpoint()
        finally:
            waiting.clear()
            errors = [other.exception() for other in others]
        for error in errors:
            if error:
                raise error


def _drain(waiting: deque[Work], checkpoint: Checkpoint | None = None) -> None:
    while waiting:
        try:
            work = waiting.popleft()
        except IndexError:  # another thread was faster
            return
        work()
        if checkpoint:
            checkpoint()
