"""A guard against forks of a process that has used a bucket.

The client of a bucket computes in threads of its own, which a fork has not: there its first call would wait for ever.
So a process that forks leaves the store to its children (``run_in_store_process``), and whoever breaks this rule hears
of it at once.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

from storage.errors import CannotStart, Unavailable
from storage.process.system import die_with_parent

_user: int | None = None
"""id of the process that first used a client, also in its forks; None before the first use"""


class UsedBeforeFork(RuntimeError):
    """A process has used a bucket, and then forked one that shall use it too."""


def note_use() -> None:
    """Call it before each use of a client. Raises UsedBeforeFork in a fork of a process that has used one."""
    global _user
    if _user is None:
        _user = os.getpid()
    if _user != os.getpid():
        raise UsedBeforeFork(
            f"process {_user} has used a bucket before it forked this process, whose calls of the bucket would "
            "wait for ever"
        )


def check_fork() -> None:
    """Call it before a fork for work with the store. Raises UsedBeforeFork if this process has used a bucket."""
    if _user is not None:
        raise UsedBeforeFork(
            f"process {_user} has used a bucket, so the processes that it forks would wait for the bucket for ever"
        )


def run_in_store_process(work: Callable[[], None]) -> None:
    """Do the work in a child process, the store process, in the place of a worker, which never uses the store itself.

    The client of a bucket has threads. A process that was forked after them is without, and its first call of the store
    would wait for ever. What a thread of the worker uses, such as the heartbeat's connection to Redis, must not be used
    by the work either: the thread may hold a lock of it at the fork, which nobody opens in the child.

    Raises CannotStart and Unavailable as the work does, Unavailable if the child ends without a word, and
    UsedBeforeFork where it could not use the store.
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
