"""A guard against forks of a process that has used a bucket.

The client of a bucket computes in threads of its own, which a fork has not: there its first call would wait for ever.
So a process that forks leaves the store to its children (``workers.worker.store_process``), and whoever breaks this
rule hears of it at once.
"""

import os

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
