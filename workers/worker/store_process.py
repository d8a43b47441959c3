"""The store process: a child of the worker, which asks the store in its place."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

from storage.errors import CannotStart, Unavailable
from storage.process.system import die_with_parent
from storage.store.forks import check_fork


def run_in_store_process(work: Callable[[], None]) -> None:
    """Do the work in a child process, the store process, since the worker itself never uses the store.

    The client of a bucket has threads. A process that was forked after them is without, and its first call of the store
    would wait for ever (``storage.store.forks``). What a thread of the worker uses, such as the heartbeat's connection
    to Redis, must not be used by the work either: the thread may hold a lock of it at the fork, which nobody opens in
    the child. Raises CannotStart and Unavailable as the work does, and Unavailable if the child ends without a word.

    Raises UsedBeforeFork where the child could not use the store.
    """
    check_fork()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(work, sender, os.getpid()), name="store")
    child.start()
    sender.close()
    try:
        error: Exception | None = receiver.recv()
    except EOFError:
        error = Unavailable("the process that asked the store has ended without an answer")
    finally:
        child.join()
        receiver.close()
    if error is not None:
        raise error


def _run(work: Callable[[], None], sender: Connection, parent: int) -> None:
    die_with_parent(parent)
    try:
        work()
    except CannotStart as error:
        sender.send(CannotStart(str(error)))
    except Unavailable as error:
        sender.send(Unavailable(str(error)))
    else:
        sender.send(None)
