"""The way of one job: the functions that run from ``POST /v1/jobs`` to the published version.

``python -m tests.architecture.way`` prints their files in their order, with the number of functions of each that run,
and of the statements of these. The job is a small one of ``svm``, the second of its process, so that what is loaded or
compiled once does not count. What a gateway does every few seconds does not count either.
"""

import ast
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from app.settings import GatewaySettings
from storage.queue.connection import connect
from storage.store import open_store
from tests.app.conftest import TWO_CLASSES, serving
from tests.architecture.size import functions, statements_in
from tests.stores import Valkey
from tests.workers.worker.attempts import make_context
from workers.worker.attempt import Attempts

ROOT = Path(__file__).parents[2]
ROOMS = ("app", "storage", "workers", "core")
PERIODIC = ROOT / "app" / "services" / "periodic.py"


class Way:
    """Functions that have run, by file, in the order in which the files were reached."""

    def __init__(self) -> None:
        self.functions: dict[Path, set[int]] = {}
        """first lines of the functions of a file, those of decorators included"""
        self._noted = False
        self._periodic: set[int] = set()
        """idents of the threads that do something every few seconds"""

    def statements(self, path: Path) -> int:
        """Number of statements of the functions of a file that have run, docstrings left out."""
        ran = [
            node
            for node in functions(ast.parse((ROOT / path).read_text()))
            if min([node.lineno, *(each.lineno for each in node.decorator_list)]) in self.functions[path]
        ]
        return len({statement.lineno for node in ran for statement in statements_in(node)})

    @contextmanager
    def noted(self, really: bool) -> Iterator[None]:
        """Note functions of any thread within the block, if ``really``."""
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
                self.functions.setdefault(path, set()).add(frame.f_code.co_firstlineno)


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


def walked() -> Way:
    """The way of a job, on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return trace(Path(folder))


def main() -> None:
    """Print the files, and how many there are."""
    way = walked()
    for path, firsts in way.functions.items():
        print(f"{len(firsts):4} {way.statements(path):4} {path}")
    for room in ROOMS:
        paths = [path for path in way.functions if path.parts[0] == room]
        print(f"{room}: {len(paths)} files, {sum(map(way.statements, paths)):,} statements")


if __name__ == "__main__":
    main()
