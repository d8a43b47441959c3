"""The store that a command works on: that of the settings, or that in a data folder of ``halfmoon up``."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.process.settings import Settings


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the data folder."""
    parser.add_argument("--data", type=Path, help="folder of `halfmoon up`, in place of HALFMOON_STORE_URL")


def store_address(options: argparse.Namespace, settings: "Settings", *, existing: bool) -> str:
    """The URL of the store. Raises CannotStart if ``existing`` is required and the data folder has no store."""
    from storage.errors import CannotStart

    if options.data is None:
        return settings.store_url
    if existing and not (options.data / "store").is_dir():
        raise CannotStart(f"{options.data} is not a data folder of `halfmoon up`: it has no folder `store`")
    return str((options.data.absolute() / "store").as_uri())
