"""What a check has found, as ``halfmoon doctor`` prints it."""

from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    """The result of one check."""

    subject: str
    good: bool
    """False: something must be fixed."""
    message: str


def report(found: Iterable[Finding]) -> int:
    """Print findings as they come; the exit code is 0 if nothing must be fixed."""
    good = True
    for finding in found:
        print(f"{'ok ' if finding.good else 'FIX'}  {finding.subject:9}  {finding.message}")
        good &= finding.good
    return 0 if good else 1
