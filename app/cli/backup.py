"""``halfmoon backup`` and ``halfmoon restore``: copy a store into a file, and back."""

import argparse
import signal
import sys
from pathlib import Path

from app.cli.store_address import add_data, store_address


def add_backup(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``halfmoon backup``."""
    parser.epilog = "example: halfmoon backup halfmoon.tar --data /srv/halfmoon"
    parser.add_argument("file", type=Path, help="tar file to write; it must not exist")
    add_data(parser)
    parser.set_defaults(run=_backup)


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``halfmoon restore``."""
    parser.epilog = "example: halfmoon restore halfmoon.tar --data /srv/halfmoon-again"
    parser.add_argument("file", type=Path, help="tar file that `halfmoon backup` wrote")
    add_data(parser)
    parser.set_defaults(run=_restore)


def _backup(options: argparse.Namespace) -> int:
    _exit_on_signals()
    from storage.process.settings import Settings
    from storage.store import open_raw, open_store
    from storage.store.admission import check_format
    from storage.upkeep.backup import back_up

    settings = Settings()
    address = store_address(options, settings, existing=True)
    check_format(open_store(address, settings.cache_dir))
    copied = back_up(
        open_raw(address),
        options.file,
        lambda key: print(f"halfmoon: {key} is damaged; it is copied as it is", file=sys.stderr),
    )
    print(f"{options.file} has {copied.files:,} files of {address}, {copied.bytes:,} bytes", file=sys.stderr)
    return 0


def _restore(options: argparse.Namespace) -> int:
    _exit_on_signals()
    from storage.process.settings import Settings
    from storage.store import open_raw
    from storage.upkeep.backup import restore

    address = store_address(options, Settings(), existing=False)
    copied = restore(open_raw(address), options.file)
    print(f"{address} has {copied.files:,} files of {options.file}, {copied.bytes:,} bytes", file=sys.stderr)
    return 0


def _exit_on_signals() -> None:
    """Let SIGTERM and SIGINT raise SystemExit, so that a partial copy is removed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("halfmoon: stopped by a signal, nothing is kept"))
