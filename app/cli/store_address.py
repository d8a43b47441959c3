"""Which store a command is about: that of the settings, or that in the data folder of ``halfmoon up``."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.settings import Settings


def add_data(parser: argparse.ArgumentParser) -> None:
    """The option that names the data folder."""
    parser.add_argument("--data", type=Path, help="folder of `halfmoon up`, in place of HALFMOON_STORE_URL")


def store_address(given: argparse.Namespace, settings: "Settings", *, existing: bool) -> str:
    """The URL of the store; raises CannotStart where one should be ``existing`` in a data folder and is not."""
    from workers.errors import CannotStart

    if given.data is None:
        return settings.store_url
    if existing and not (given.data / "store").is_dir():
        raise CannotStart(f"{given.data} is not a data folder of `halfmoon up`: it has no folder `store`")
    return str((given.data.absolute() / "store").as_uri())
