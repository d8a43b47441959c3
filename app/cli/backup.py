"""``halfmoon backup`` and ``halfmoon restore``: a store in one file, and back."""

import argparse
import signal
import sys
from pathlib import Path

from app.cli.store_address import add_data, store_address


def add_backup(parser: argparse.ArgumentParser) -> None:
    """What follows ``halfmoon backup``."""
    parser.add_argument("file", type=Path, help="tar file to write; there must be none of this name")
    add_data(parser)
    parser.set_defaults(run=_backup)


def add_restore(parser: argparse.ArgumentParser) -> None:
    """What follows ``halfmoon restore``."""
    parser.add_argument("file", type=Path, help="tar file that `halfmoon backup` has written")
    add_data(parser)
    parser.set_defaults(run=_restore)


def _backup(given: argparse.Namespace) -> int:
    _clean_up_when_told_to_end()
    from workers.settings import Settings
    from workers.store import open_raw
    from workers.upkeep.backup import back_up

    address = store_address(given, Settings(), existing=True)
    copied = back_up(open_raw(address), given.file)
    print(f"{given.file} has {copied.files:,} files of {address}, {copied.bytes:,} bytes", file=sys.stderr)
    return 0


def _restore(given: argparse.Namespace) -> int:
    _clean_up_when_told_to_end()
    from workers.settings import Settings
    from workers.store import open_raw
    from workers.upkeep.backup import restore

    address = store_address(given, Settings(), existing=False)
    copied = restore(open_raw(address), given.file)
    print(f"{address} has {copied.files:,} files of {given.file}, {copied.bytes:,} bytes", file=sys.stderr)
    return 0


def _clean_up_when_told_to_end() -> None:
    """What is half done is undone also where SIGTERM or Ctrl-C ends it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("halfmoon: told to end, nothing is kept"))
