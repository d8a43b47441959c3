"""Commands as values: their names, help texts, options and functions, from which a parser is made."""

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from storage.errors import CannotStart

Run = Callable[[argparse.Namespace], int]


class Option(NamedTuple):
    """An option or a position of the command line."""

    names: tuple[str, ...]
    settings: Mapping[str, Any]
    """arguments of ``add_argument`` of argparse"""


def option(*names: str, **settings: Any) -> Option:
    """An option, by the arguments of ``add_argument`` of argparse."""
    return Option(names, settings)


class Command(NamedTuple):
    """A command. It runs, or has commands of its own."""

    name: str
    help: str
    run: Run | None = None
    options: Sequence[Option] = ()
    example: str | None = None
    commands: "Sequence[Command]" = ()

    def fill(self, parser: argparse.ArgumentParser, metavar: str = "action", *, required: bool = True) -> None:
        """Give a parser the options and the commands of this one; the function of what is parsed is ``run``."""
        parser.set_defaults(run=self.run)
        for names, settings in self.options:
            parser.add_argument(*names, **settings)
        if self.commands:
            inner = parser.add_subparsers(required=required, metavar=metavar)
            for each in self.commands:
                epilog = None if each.example is None else f"example: {each.example}"
                description = f"{each.help[0].upper()}{each.help[1:]}."
                each.fill(inner.add_parser(each.name, help=each.help, description=description, epilog=epilog))


def command(name: str, *options: Option, example: str | None = None) -> Callable[[Run], Command]:
    """Makes a command of the function below, whose docstring is the help."""

    def made(run: Run) -> Command:
        described = inspect.getdoc(run) or ""
        return Command(name, described[:1].lower() + described[1:].rstrip("."), run, options, example)

    return made


def python_client() -> ModuleType:
    """The package of the Python client; raises CannotStart where it is not installed."""
    try:
        import halfmoon
    except ImportError:
        raise CannotStart(
            "this command needs the Python client: pip install ./client in a checkout, or the wheel halfmoon-client"
        ) from None
    return halfmoon
