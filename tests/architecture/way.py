"""The way of one job: the files whose functions run from ``POST /v1/jobs`` to the published version.

``python -m tests.architecture.way`` prints them in their order, with the number of functions of each that run. The job
is a small one of ``svm``, the second of its process, so that what is loaded or compiled once does not count. What a
gateway does every few seconds does not count either.
"""

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from app.settings import GatewaySettings
from storage.queue.connect import connect
from storage.store import open_store
from tests.app.conftest import TWO_CLASSES, serving
from tests.stores import Valkey
from tests.workers.worker.attempts import make_context
from workers.worker.attempt import Attempts

ROOT = Path(__file__).parents[2]
ROOMS = ("app", "storage", "workers", "core")
PERIODIC = ROOT / "app" / "services" / "periodic.py"


class Way:
    """Functions that have run, by file, in the order in which the files were reached."""

    def __init__(self) -> None:
        self.functions: dict[Path, set[str]] = {}
        self._noted = False
        self._periodic: set[int] = set()
        """idents of the threads that do something every few seconds"""

    @contextmanager
    def noted(self, really: bool) -> Iterator[None]:
        """Note what runs in any thread within the block, if ``really``."""
        self._noted = really
        try:
            yield
        finally:
            self._noted = False

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """See sys.setprofile."""
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        path, thread = Path(frame.f_code.co_filename), threading.get_ident()
        if path == PERIODIC and frame.f_code.co_name == "_run":
            self._periodic.add(thread)
        if self._noted and thread not in self._periodic and path.is_relative_to(ROOT):
            path = path.relative_to(ROOT)
            if path.parts[0] in ROOMS:
                self.functions.setdefault(path, set()).add(frame.f_code.co_name)


def trace(folder: Path) -> Way:
    """The way of the second of two jobs."""
    way, valkey = Way(), Valkey(folder)
    threading.setprofile(way.profile)
    sys.setprofile(way.profile)
    valkey.start()
    settings = GatewaySettings(store_url=f"file://{folder}/store", redis_url=valkey.url, redis_timeout_seconds=30)
    try:
        with serving(settings) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            dataset = client.post("/v1/datasets", json={"documents": TWO_CLASSES}).json()["id"]
            with connect(valkey.url, 30) as redis:
                context = make_context(open_store(settings.store_url), redis)
                for second in (False, True):
                    with way.noted(second):
                        body = {"dataset": dataset, "model": "news", "algorithm": "svm"}
                        job = client.post("/v1/jobs", json=body).json()["id"]
                    attempts = Attempts(context)
                    with way.noted(second):
                        attempts.run(job)
    finally:
        sys.setprofile(None)
        valkey.kill()
    return way


def main() -> None:
    """Print the files, and how many there are."""
    with tempfile.TemporaryDirectory() as folder:
        way = trace(Path(folder))
    for path, names in way.functions.items():
        print(f"{len(names):4} {path}")
    rooms = Counter(path.parts[0] for path in way.functions)
    lines = sum(len((ROOT / path).read_text().splitlines()) for path in way.functions)
    print(f"{len(way.functions)} files of {lines:,} lines: {', '.join(f'{rooms[room]} of {room}' for room in ROOMS)}")


if __name__ == "__main__":
    main()
