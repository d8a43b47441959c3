"""Warm-up: compiles all kernels that training runs into Numba's cache, or loads them from it, so that no job waits for
the compiler.

Numba compiles one function at a time in a process. So two processes share the algorithms once one had to be compiled:
this one takes them from the beginning of the list, a helper from its end, until they meet. Then this process loads from
the cache what the helper has compiled. Where all is in the cache, a helper would only cost time.
"""

import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.synchronize import Semaphore

import numpy as np
from numba.core.event import install_recorder

from core.numerics.vectors import dot
from core.threads import available_processors
from core.warm_up import WARMED
from core.warm_up import warming as warming_of
from storage.errors import CannotStart
from storage.process.system import die_with_parent

_POLL_SECONDS = 0.05


def warming(algorithms: Sequence[str] = WARMED) -> Iterator[None]:
    """The warm-up for these algorithms in steps, between which the caller may do something else.

    Raises CannotStart when the kernels cannot be compiled.
    """
    names = list(algorithms)
    try:
        if available_processors() > 1:
            with install_recorder("numba:compile") as compiled:
                dot(np.zeros(1), np.zeros(1))  # a small one says soon that the cache is empty
                while names and not compiled.buffer:
                    yield from warming_of([names.pop(0)])
            names = yield from _share(names)
        yield from warming_of(names)
    except Exception as error:  # whatever Numba finds wrong with its cache or the processor
        raise CannotStart(
            f"the kernels cannot be compiled: {error}; NUMBA_CACHE_DIR must be a folder that can be written"
        ) from error


def warm_up(algorithms: Sequence[str] = WARMED) -> None:
    """All steps of ``warming``."""
    for _ in warming(algorithms):
        pass


def _share(names: list[str]) -> Generator[None, None, list[str]]:
    """Warm up for these algorithms beside a helper; returns the algorithms that the helper has taken, which are in the
    cache now.

    The helper reports no failure: this process meets the same one when it loads what the helper should have compiled.
    """
    context, own = multiprocessing.get_context("fork"), 0
    untaken = context.Semaphore(len(names))  # counts the algorithms that neither process has taken
    helper = context.Process(target=_help, args=(names[::-1], untaken, os.getpid()), name="warm-up")
    helper.start()
    try:
        while untaken.acquire(block=False):
            yield from warming_of([names[own]])
            own += 1
        while helper.is_alive():
            helper.join(_POLL_SECONDS)
            yield
    finally:
        helper.kill()
        helper.join()
    return names[own:]


def _help(names: list[str], untaken: Semaphore, parent: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(parent)
    try:
        for name in names:
            if not untaken.acquire(block=False):
                break
            list(warming_of([name]))
    finally:
        os._exit(0)  # without the exit handlers and the traceback of the parent
