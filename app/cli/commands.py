"""The command line of ``halfmoon``. Each command imports its modules when it runs."""

import argparse
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from app.cli.command import Command, command, option
from app.cli.files import COMMANDS as FILES
from app.cli.files import column_options, existing, key_of, query_of
from app.cli.store import KEYS, backup, restore
from core.errors import HalfmoonError, did_you_mean
from storage.errors import CannotStart
from storage.process.system import lasting

_INVALID = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_WORD = re.compile(r"[\w-]+")
_OPTION = re.compile(r"--[\w-]+")
_USAGE_ERROR = 2
"""Exit code of argparse for wrong arguments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Errors that the user can fix are reported in a line, without a traceback.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help(sys.stderr)
        return _USAGE_ERROR
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except HalfmoonError as error:
        print(f"halfmoon: {error}", file=sys.stderr)
    except BrokenPipeError:  # who reads the output has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:  # of a file that an argument names
        if error.filename is None or error.strerror is None:
            raise
        print(f"halfmoon: {error.filename}: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:  # before the command handles it
        return 128 + signal.SIGINT
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            name = "_".join(str(part) for part in problem["loc"]).upper()
            print(f"halfmoon: setting HALFMOON_{name}: {problem['msg']}", file=sys.stderr)
    return 1


class _Parser(argparse.ArgumentParser):
    """A parser that says which word was probably meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the class above, but for arguments that are not known: they are an error of the command that has them."""
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unknown argument {rest[0]}{did_you_mean(rest[0], _OPTION.findall(self.format_usage()))}")
        return options, rest

    def error(self, message: str) -> NoReturn:
        """As the class above, with the word that was probably meant in place of an unknown one."""
        wrong = _INVALID.search(message)
        super().error(message + (did_you_mean(wrong[1], _WORD.findall(wrong[2])) if wrong else ""))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="halfmoon",
        description="Semi-supervised classification of documents as a service.",
        epilog="To see it work: halfmoon demo. To use it: halfmoon up.",
    )
    _HALFMOON.fill(parser, "command", required=False)
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: these are numbers from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


_DATA = option("--data", type=Path, default=Path("data"), help="folder of all data (default: ./%(default)s)")
_WORKERS = "number of worker processes (default: %(default)s)"


@command(
    "up",
    option("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"),
    option(
        "--port",
        type=_port,
        default=8000,
        help="port to listen on; 0 takes a free one (default: %(default)s)",
    ),
    _DATA,
    option(
        "--gateways",
        type=_count,
        default=1,
        help="number of gateway processes at the one address (default: %(default)s)",
    ),
    option("--workers", type=_count, default=1, help=_WORKERS),
    example="halfmoon up --data /srv/halfmoon --workers 2",
)
def up(options: argparse.Namespace) -> int:
    """Run the whole service on this machine: gateway, workers and Valkey."""
    with lasting():
        from app.http.sockets.listener import check_exposure
        from app.local.up import Plan, up
        from app.settings import GatewaySettings
        from workers.encoders.catalogue import Encoders

    settings = GatewaySettings()
    check_exposure(settings.access, options.host)
    store_url = settings.store_url if "store_url" in settings.model_fields_set else None
    print(f"halfmoon: {Encoders.of(settings).in_words}", file=sys.stderr, flush=True)
    data, drain = options.data.absolute(), settings.drain_seconds
    return up(
        Plan(data, options.host, options.port, options.workers, os.environ, drain, store_url, gateways=options.gateways)
    )


@command("restart", _DATA)
def restart(options: argparse.Namespace) -> int:
    """Replace the gateways of a running `halfmoon up` one after the other; no request fails meanwhile."""
    from app.local.restart import request_restart

    print(request_restart(options.data.absolute()))
    return 0


@command(
    "api",
    option("--host", help="address to listen on, in place of HALFMOON_HOST"),
    option("--port", type=_port, help="port to listen on, in place of HALFMOON_PORT"),
    # from `halfmoon up`: an open listening socket, the folder where its gateways find each other, whether
    # there are several
    option("--descriptor", type=int, help=argparse.SUPPRESS),
    option("--processes", type=Path, help=argparse.SUPPRESS),
    option("--several", action="store_true", help=argparse.SUPPRESS),
)
def api(options: argparse.Namespace) -> int:
    """Run a gateway alone; the settings HALFMOON_REDIS_URL and HALFMOON_STORE_URL name Redis and the store."""
    with lasting():
        from app.http.sockets.listener import Processes
        from app.serve import serve
        from app.settings import GatewaySettings

    overrides = {name: value for name in ("host", "port") if (value := getattr(options, name)) is not None}
    processes = None if options.processes is None else Processes(options.processes, options.several)
    return serve(GatewaySettings(**overrides), options.descriptor, processes)


@command("worker")
def worker(options: argparse.Namespace) -> int:
    """Run a worker alone, with the same settings."""
    with lasting():
        from storage.process.settings import Settings
        from workers.worker.run import run_worker

    return run_worker(Settings())


@command(
    "cluster",
    option(
        "--host",
        default="127.0.0.1",
        help="address to listen on; beyond this machine it needs certificates (default: %(default)s)",
    ),
    option(
        "--port",
        type=_port,
        default=8786,
        help="port of the scheduler; 0 takes a free one (default: %(default)s)",
    ),
    option("--workers", type=_count, default=2, help=_WORKERS),
)
def cluster(options: argparse.Namespace) -> int:
    """Run a cluster on this machine, with which workers share large trainings (docs/engines.md)."""
    from storage.process.settings import Settings
    from workers.cluster.address import TlsFiles, security_class

    security_class()
    settings = Settings()
    files = TlsFiles(settings.cluster_ca, settings.cluster_cert, settings.cluster_key)
    from workers.cluster.local import run_cluster

    return run_cluster(options.host, options.port, options.workers, files)


@command(
    "doctor",
    option(
        "--data",
        type=Path,
        metavar="FILE",
        help="say what would be understood of this file, and what is wrong with it, instead; or the data "
        "folder of a `halfmoon up` (default: ./data if it is one)",
    ),
    *column_options(),
    example="halfmoon doctor --data tickets.csv --text body --label topic",
)
def doctor(options: argparse.Namespace) -> int:
    """Check settings, Redis, store, disk and kernels, or a file of documents, and say what to fix."""
    from app.cli.doctor import examine, examine_documents, report

    if options.data is None:
        return report(examine())
    if (options.data / "store").is_dir():
        return report(examine(options.data))
    if options.data.is_dir():
        raise CannotStart(f"{str(options.data)!r} is a folder; text files in folders are sent as a .zip or .tar of it")
    return report(examine_documents(existing(options.data), query_of(options)))


@command("warm")
def warm(options: argparse.Namespace) -> int:
    """Compile the kernels into Numba's cache, so that the first start is quick."""
    from workers.worker.warm_up import warm_up

    started = time.monotonic()
    warm_up()
    print(f"the kernels are compiled and cached ({time.monotonic() - started:.1f} s)")
    return 0


@command(
    "demo",
    option("--url", help="address of a running service (default: one is started and stopped again)"),
    option(
        "--key-file",
        type=Path,
        help="file with an API key of scopes predict, train and admin, for a service that requires one",
    ),
)
def demo(options: argparse.Namespace) -> int:
    """Train on real vectors and texts over HTTP, label what is suggested, and show the errors."""
    from app.cli.demo import demo

    return demo(options.url, key_of(options))


_HALFMOON = Command(
    "halfmoon",
    "",
    options=[option("--version", action="version", version=version("halfmoon"))],
    commands=[up, restart, api, worker, cluster, doctor, *FILES, KEYS, backup, restore, warm, demo],
)
