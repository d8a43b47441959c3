"""``halfmoon keys``, ``halfmoon backup`` and ``halfmoon restore``: commands that work on a store, without a gateway."""

import argparse
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.command import Command, Run, command, option

if TYPE_CHECKING:
    from storage.process.settings import Settings
    from storage.repositories.api_keys import ApiKeys

SCOPES = ("predict", "label", "train", "admin")
"""Scopes of keys, repeated here so that the command line loads no repositories; see
``storage.repositories.api_keys.Scope``."""


_MAX_DAYS = 36_500
_DEFAULT = Path("data")
"""Data folder of ``halfmoon up``, unless it is told another."""


_DATA = option(
    "--data", type=Path, help="folder of `halfmoon up` (default: HALFMOON_STORE_URL, else ./data if it is one)"
)


def used_folder(named: Path | None, settings: "Settings") -> Path | None:
    """The data folder of ``halfmoon up`` that is meant: the one that is named, else its own default where no setting
    names a store and there is one; None: the store of the settings.
    """
    if named is None and "store_url" not in settings.model_fields_set and (_DEFAULT / "store").is_dir():
        return _DEFAULT
    return named


def store_address(named: Path | None, settings: "Settings", *, existing: bool) -> str:
    """The URL of the store, which lies in the data folder that is ``named``, if one is.

    Raises CannotStart if ``existing`` is required and the data folder has no store, and where nothing says which store
    is meant: a key in a store that no service reads would be of no use.
    """
    from storage.errors import CannotStart

    folder = used_folder(named, settings)
    if folder is not None:
        if existing and not (folder / "store").is_dir():
            raise CannotStart(f"{folder} is not a data folder of `halfmoon up`: it has no folder `store`")
        return str((folder.absolute() / "store").as_uri())
    if "store_url" not in settings.model_fields_set and not Path(settings.store_url.removeprefix("file://")).is_dir():
        raise CannotStart(
            "no store is here: name the folder of `halfmoon up` by --data, or the store of the service by "
            "HALFMOON_STORE_URL"
        )
    return settings.store_url


@command(
    "backup",
    option("file", type=Path, help="tar file to write; it must not exist"),
    _DATA,
    example="halfmoon backup halfmoon.tar --data /srv/halfmoon",
)
def backup(options: argparse.Namespace) -> int:
    """Copy the store into a file."""
    _exit_on_signals()
    from storage.process.settings import Settings
    from storage.store import open_raw, open_store
    from storage.upkeep.backup import back_up
    from storage.upkeep.binding import check_format

    settings = Settings()
    address = store_address(options.data, settings, existing=True)
    check_format(open_store(address, settings.cache_dir))
    copied = back_up(
        open_raw(address),
        options.file,
        lambda key: print(f"halfmoon: {key} is damaged; it is copied as it is", file=sys.stderr),
    )
    print(f"{options.file} has {copied.files:,} files of {address}, {copied.bytes:,} bytes", file=sys.stderr)
    return 0


@command(
    "restore",
    option("file", type=Path, help="tar file that `halfmoon backup` wrote"),
    _DATA,
    example="halfmoon restore halfmoon.tar --data /srv/halfmoon-again",
)
def restore(options: argparse.Namespace) -> int:
    """Copy a backup into an empty store."""
    _exit_on_signals()
    from storage.process.settings import Settings
    from storage.store import open_raw
    from storage.upkeep.backup import restore

    address = store_address(options.data, Settings(), existing=False)
    copied = restore(open_raw(address), options.file)
    print(f"{address} has {copied.files:,} files of {options.file}, {copied.bytes:,} bytes", file=sys.stderr)
    return 0


def _exit_on_signals() -> None:
    """Let SIGTERM and SIGINT raise SystemExit, so that a partial copy is removed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("halfmoon: stopped by a signal, nothing is kept"))


def _days(text: str) -> float:
    """A number of days; raises ArgumentTypeError if it is not positive or beyond all calendars."""
    with suppress(ValueError):
        if 0 < (days := float(text)) <= _MAX_DAYS:
            return days
    raise argparse.ArgumentTypeError(f"must be a number of days above 0 and at most {_MAX_DAYS}")


def _on_keys(action: Callable[["ApiKeys", argparse.Namespace], None], *, existing: bool = True) -> Run:
    """The function of a command that runs an action on the keys. With ``existing`` no store is created where there is
    none.
    """

    @wraps(action)
    def run(options: argparse.Namespace) -> int:
        from storage.process.settings import Settings
        from storage.repositories.api_keys import ApiKeys
        from storage.store import open_store
        from storage.upkeep.binding import check_format

        settings = Settings()
        store = open_store(store_address(options.data, settings, existing=existing), settings.cache_dir)
        check_format(store)
        action(ApiKeys(store), options)
        return 0

    return run


@command(
    "create",
    _DATA,
    option("--name", required=True, help="name of the caller; letters, digits, '.', '_' or '-'"),
    option("--scope", choices=SCOPES, action="append", required=True, help="scope of the key; may be repeated"),
    option("--days", type=_days, help="days for which it is valid (default: until it is revoked)"),
    example="halfmoon keys create --name shop --scope predict --days 365 > shop.key",
)
@partial(_on_keys, existing=False)
def create_key(keys: "ApiKeys", options: argparse.Namespace) -> None:
    """Create a key and print it; it is not shown again."""
    from storage.repositories.api_keys import Scope

    expires_at = None if options.days is None else datetime.now(UTC) + timedelta(days=options.days)
    key, text = keys.create(options.name, {Scope(scope) for scope in options.scope}, expires_at)
    print(f"{key.id} for {', '.join(key.scopes)}; it works within seconds and is not shown again:", file=sys.stderr)
    print(text)


@command("list", _DATA)
@_on_keys
def list_keys(keys: "ApiKeys", options: argparse.Namespace) -> None:
    """List all keys, without their secrets."""
    now = datetime.now(UTC)
    all_keys = list(keys.every())
    if not all_keys:
        print("there are no keys here; `halfmoon keys create` makes one", file=sys.stderr)
    for listed in all_keys:
        key = listed.key
        until = "" if key.expires_at is None else f"  until {key.expires_at:%Y-%m-%d}"
        print(
            f"{key.id}  {listed.state(now):7}  {key.created_at:%Y-%m-%d}  {','.join(key.scopes):19}  {key.name}{until}"
        )


@command("revoke", _DATA, option("id", help="id of the key, as `list` prints it"))
@_on_keys
def revoke_key(keys: "ApiKeys", options: argparse.Namespace) -> None:
    """Make a key invalid for ever, within seconds in every gateway."""
    keys.revoke(options.id)
    print(f"{options.id} is revoked", file=sys.stderr)


KEYS = Command("keys", "create, list and revoke API keys", commands=[create_key, list_keys, revoke_key])
