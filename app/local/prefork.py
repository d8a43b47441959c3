"""The workers of ``halfmoon up``: forks of the process that keeps them running, which has loaded and compiled all that a training needs.

So a worker that has died is there again within milliseconds, however busy the machine, and what they have loaded is in memory once.
"""

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from app.local.children import Work
from core.train import warming
from workers.errors import CannotStart
from workers.settings import Settings
from workers.worker.run import run_worker


def warm_up() -> Iterator[None]:
    """Compile the kernels or load them from the cache, in steps, between which something else may be done. Raises CannotStart."""
    try:
        yield from warming()
    except Exception as error:  # whatever Numba finds wrong with its cache or the processor
        raise CannotStart(f"the kernels cannot be compiled: {error}; NUMBA_CACHE_DIR must be a folder that can be written") from error


def workers(count: int, settings: Mapping[str, str], private: Sequence[int]) -> Iterator[Work]:
    """The workers, with ``settings`` in place of those of the environment; they let go of the descriptors ``private``."""
    told = Settings.model_validate(settings)
    gc.freeze()  # what is not looked through for garbage is not copied
    for number in range(1, count + 1):
        yield Work(f"worker-{number}", partial(_work, told, private))


def _work(settings: Settings, private: Sequence[int], before: int | None) -> int:
    for descriptor in private:
        os.close(descriptor)
    return run_worker(settings, warmed=True, replaces=before)
