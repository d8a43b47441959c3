"""``halfmoon keys``: make, list and revoke API keys."""

import argparse
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from app.cli.store_address import add_data, store_address

if TYPE_CHECKING:
    from workers.repositories.api_keys import ApiKeys

SCOPES = ("predict", "train", "admin")
"""What keys are for, named here so that the commands can be listed without loading what makes keys; see ``workers.repositories.api_keys.Scope``."""


_MOST_DAYS = 36_500


def add_command(parser: argparse.ArgumentParser) -> None:
    """What follows ``halfmoon keys``."""
    commands = parser.add_subparsers(required=True, metavar="action")
    create = _action(commands.add_parser("create", help="make a key and print it, this once"), _create, existing=False)
    create.add_argument("--name", required=True, help="whom it is for; letters, digits, '.', '_' or '-'")
    create.add_argument("--scope", choices=SCOPES, action="append", required=True, help="what it is for; may be given again")
    create.add_argument("--days", type=_days, help="for how long it is valid (default: until it is revoked)")
    _action(commands.add_parser("list", help="list all keys, without their secrets"), _list)
    revoke = _action(commands.add_parser("revoke", help="make a key invalid, for good, within seconds and everywhere"), _revoke)
    revoke.add_argument("id", help="of the key, as `list` shows it")


def _days(text: str) -> float:
    """Raises ArgumentTypeError for what is no time to come, or beyond all calendars."""
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 0 < days <= _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"must be a number of days above 0 and at most {_MOST_DAYS}")
    return days


def _action(
    parser: argparse.ArgumentParser, act: Callable[["ApiKeys", argparse.Namespace], None], *, existing: bool = True
) -> argparse.ArgumentParser:
    """``existing``: where there is no store yet, none is made."""

    def run(given: argparse.Namespace) -> int:
        from workers.repositories.api_keys import ApiKeys
        from workers.settings import Settings
        from workers.store import open_store

        settings = Settings()
        act(ApiKeys(open_store(store_address(given, settings, existing=existing), settings.cache_dir)), given)
        return 0

    add_data(parser)
    parser.set_defaults(run=run)
    return parser


def _create(keys: "ApiKeys", given: argparse.Namespace) -> None:
    from workers.repositories.api_keys import Scope

    expires_at = None if given.days is None else datetime.now(UTC) + timedelta(days=given.days)
    key, text = keys.create(given.name, {Scope(scope) for scope in given.scope}, expires_at)
    print(f"{key.id} for {', '.join(key.scopes)}; it works within seconds and is shown only now:", file=sys.stderr)
    print(text)


def _list(keys: "ApiKeys", given: argparse.Namespace) -> None:
    now = datetime.now(UTC)
    every = list(keys.every())
    if not every:
        print("there are no keys here; `halfmoon keys create` makes one", file=sys.stderr)
    for listed in every:
        key = listed.key
        until = "" if key.expires_at is None else f"  until {key.expires_at:%Y-%m-%d}"
        print(f"{key.id}  {listed.state(now):7}  {key.created_at:%Y-%m-%d}  {','.join(key.scopes):19}  {key.name}{until}")


def _revoke(keys: "ApiKeys", given: argparse.Namespace) -> None:
    keys.revoke(given.id)
    print(f"{given.id} is revoked", file=sys.stderr)
