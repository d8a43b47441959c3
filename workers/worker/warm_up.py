"""Warm-up: compiles all kernels that training runs into Numba's cache, or loads them from it, so that no job waits for
the compiler.

Numba compiles one function at a time in a process. So two processes share the parts once one had to be compiled:
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
from core.warm_up import WARMED, Part
from core.warm_up import warming as warming_of
from storage.errors import CannotStart
from storage.process.system import die_with_parent


def warming(parts: Sequence[Part], *, aside: bool = False) -> Iterator[None]:
    """These parts of the warm-up in steps, between which the caller may do something else; ``aside`` a helper compiles
    them alone, and no step takes long.

    Raises CannotStart when the kernels cannot be compiled.
    """
    left = list(parts)
    try:
        if available_processors() > 1:
            with install_recorder("numba:compile") as compiled:
                dot(np.zeros(1), np.zeros(1))  # a small one says soon that the cache is empty
                while left and not compiled.buffer:
                    yield from warming_of([left.pop(0)])
            left = yield from _share(left, aside)
        yield from warming_of(left)
    except Exception as error:  # whatever Numba finds wrong with its cache or the processor
        raise CannotStart(
            f"the kernels cannot be compiled: {error}; NUMBA_CACHE_DIR must be a folder that can be written"
        ) from error


def warm_up(parts: Sequence[Part] = WARMED) -> None:
    """All steps of ``warming``."""
    for _ in warming(parts):
        pass


def _share(parts: list[Part], aside: bool) -> Generator[None, None, list[Part]]:
    """Take these parts beside a helper, or leave them to it; returns those that the helper has taken, which are in the
    cache now.

    The helper reports no failure: this process meets the same one when it loads what the helper should have compiled.
    """
    context, own = multiprocessing.get_context("fork"), 0
    untaken = context.Semaphore(len(parts))  # counts the parts that neither process has taken
    helper = context.Process(target=_help, args=(parts[::-1], untaken, os.getpid()), name="warm-up")
    helper.start()
    try:
        while not aside and untaken.acquire(block=False):
            yield from warming_of([parts[own]])
            own += 1
        while helper.is_alive():
            helper.join(0.05)
            yield
    finally:
        helper.kill()
        helper.join()
    return parts[own:]


def _help(parts: list[Part], untaken: Semaphore, parent: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(parent)
    try:
        for part in parts:
            if not untaken.acquire(block=False):
                break
            list(warming_of([part]))
    finally:
        os._exit(0)  # without the exit handlers and the traceback of the parent
