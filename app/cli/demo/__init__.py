"""``halfmoon demo``: real documents through the service and back, by HTTP alone: vectors, then texts."""

import signal
import sys
import tempfile
from pathlib import Path

import httpx
from rich.console import Console

from app.cli.demo.service import running
from app.cli.demo.texts import show_texts
from app.cli.demo.vectors import show_vectors
from workers.errors import CannotStart


def demo_here() -> int:
    """Start a service in a temporary folder on a free port, run the demo against it, and stop it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        temporary = tempfile.TemporaryDirectory(prefix="halfmoon-demo-")
    except OSError as error:
        raise CannotStart(f"there is no room for the demo's service: {error}") from None
    with temporary as folder, running(Path(folder)) as url:
        return demo(url)


def demo(url: str, key: str | None = None) -> int:
    """Returns 0 when all of it worked. Raises CannotStart with what went wrong."""
    console = Console(highlight=False)
    try:
        with httpx.Client(base_url=url, timeout=60.0, trust_env=False, headers={"X-API-Key": key} if key else None) as client:
            for show in (show_vectors, show_texts):
                show(client, console)
    except httpx.HTTPError as error:
        raise CannotStart(f"the demo failed: {type(error).__name__}: {error}") from None
    return 0
