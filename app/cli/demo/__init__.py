"""``halfmoon demo``: trains on real vectors and texts by the Python client, and shows the results."""

import os
import signal
import sys
import time
from types import ModuleType
from typing import Any

from rich.console import Console

from app.cli.command import python_client
from app.cli.demo.texts import load_texts, show_texts
from app.cli.demo.vectors import load_vectors, show_vectors
from storage.errors import CannotStart


def demo(url: str | None = None, key: str | None = None) -> int:
    """Run the demo against a running service, by default against one of its own, in a temporary folder on a free port.

    Returns 0 when all of it worked; raises CannotStart with what went wrong.
    """
    client = python_client()
    os.environ["NO_PROXY"] = "*"  # no proxy stands between the demo and its service
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(highlight=False)
    try:
        with client.Halfmoon(url, key=key) if url else _started(client, console) as service:
            begun = time.monotonic()
            show_vectors(service, console, load_vectors(0))
            show_texts(service, console, load_texts())
    except client.HalfmoonError as error:
        raise CannotStart(f"the demo failed: {error}") from None
    console.rule()
    console.print(f"All of it worked, in {time.monotonic() - begun:.0f} s.")
    if not url:
        console.print(
            "To keep a service running: [bold]make serve[/], or [bold]halfmoon up[/]. It describes every call at "
            "http://127.0.0.1:8000/docs."
        )
    return 0


def _started(client: ModuleType, console: Console) -> Any:
    try:
        with console.status("Starting a service (the first start compiles, which may take a minute) …"):
            return client.Halfmoon.local()
    except OSError as error:
        raise CannotStart(f"the demo's service needs a temporary folder: {error}") from None
