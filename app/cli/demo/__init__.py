"""``halfmoon demo``: trains on real vectors and texts over HTTP, as any client would, and shows the results."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
from rich.console import Console

from app.cli.demo.texts import Texts, load_texts, show_texts
from app.cli.demo.vectors import Documents, load_vectors, show_vectors
from storage.errors import CannotStart
from storage.process.system import die_with_parent

START_TIMEOUT_SECONDS = 120.0
"""seconds within which the service must be ready"""
_POLL_SECONDS = 0.05
_READY = "Halfmoon is ready: "


class _Data(NamedTuple):
    """The documents of the demo."""

    vectors: Documents
    texts: Texts

    @classmethod
    def load(cls) -> "_Data":
        """Read both sets; raises CannotStart when one is not installed."""
        return cls(load_vectors(0), load_texts())


def demo_here() -> int:
    """Run the demo against a service of its own, in a temporary folder on a free port.

    Returns the exit code, raises CannotStart.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        temporary = tempfile.TemporaryDirectory(prefix="halfmoon-demo-")
    except OSError as error:
        raise CannotStart(f"the demo's service needs a temporary folder: {error}") from None
    console = Console(highlight=False)
    with temporary as folder, started(Path(folder)) as address_when_ready:
        with console.status("Starting a service (the first start compiles, which may take a minute) …"):
            data = _Data.load()  # while the service starts
            url = address_when_ready()
        code = _demo(url, None, data, console)
    console.print(
        "To keep a service running: [bold]make serve[/], or [bold]halfmoon up[/]. It describes every call at "
        "http://127.0.0.1:8000/docs."
    )
    return code


def demo(url: str, key: str | None = None) -> int:
    """Run the demo against a running service.

    Returns 0 when all of it worked; raises CannotStart with what went wrong.
    """
    return _demo(url, key, _Data.load(), Console(highlight=False))


def _demo(url: str, key: str | None, data: _Data, console: Console) -> int:
    shows: tuple[Callable[[httpx.Client], None], ...] = (
        lambda client: show_vectors(client, console, data.vectors),
        lambda client: show_texts(client, console, data.texts),
    )
    begun = time.monotonic()
    try:
        with httpx.Client(
            base_url=url, timeout=60.0, trust_env=False, headers={"X-API-Key": key} if key else None
        ) as client:
            for show in shows:
                show(client)
    except httpx.HTTPError as error:
        raise CannotStart(f"the demo failed: {type(error).__name__}: {error}") from None
    console.rule()
    console.print(f"All of it worked, in {time.monotonic() - begun:.0f} s.")
    return 0


@contextmanager
def started(folder: Path) -> Iterator[Callable[[], str]]:
    """Start the service; gives a function that waits until it is ready and returns its address.

    That function raises CannotStart, with the last lines of the log, when the service exits or is not ready in time.
    """
    log = folder / "log"
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", "--data", str(folder / "data")]
    environment = {**os.environ, "HALFMOON_EVENT_POLL_SECONDS": "0.05"}  # the demo waits for eight short jobs
    end_with_this = partial(die_with_parent, os.getpid(), signal.SIGTERM)
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_this,
        ) as process,
    ):
        try:
            yield partial(_address, process, log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith(_READY):
                return line.removeprefix(_READY)
        time.sleep(_POLL_SECONDS)
    last_lines = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise CannotStart(f"the demo's service did not start; the end of its log:\n{last_lines}")
