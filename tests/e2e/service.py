"""``halfmoon up`` as a user runs it: a process of its own, on a free port."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import httpx
import numpy as np
import psutil
from scipy.sparse import csr_array

from tests.processes import children, kill, runs
from tests.there import there
from tests.waiting import HANG, SLOW, until

READY = "Halfmoon is ready: "


class Service:
    """A context manager; leaving it stops the service and makes sure that nothing of it is left.

    ``through`` is the Redis URL of something between the service and its own Valkey, ``arguments`` are more of the
    command's, ``environment`` is added to that of this process.
    """

    def __init__(
        self,
        data: Path,
        log: Path,
        workers: int = 1,
        through: str | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
        **settings: str,
    ) -> None:
        direct = ["app.cli", "up", "--port", "0", "--data", str(data), "--workers", str(workers), *arguments]
        self._command = [
            sys.executable,
            "-m",
            *(direct if through is None else ["tests.storm.launch", through, str(data), str(workers), *arguments]),
        ]
        self._log = log
        self.data = data
        settings = {f"HALFMOON_{name.upper()}": value for name, value in settings.items()}
        self._environment = {**os.environ, **environment, **settings}
        self._seen: set[psutil.Process] = set()
        self.process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(timeout=HANG, trust_env=False)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # a service that is not ready in time is stopped, too: nothing of it may go on beside other tests
            stack.push(self.__exit__)
            self.launch()
            self.await_line(READY)
            self.url = self.said().split(READY)[1].split()[0]
            self.client.base_url = httpx.URL(self.url)
            until(lambda: self.get("/v1/health/ready")["workers"] > 0, SLOW)
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop()
        for process in self._seen:
            kill(process)

    def launch(self) -> None:
        """Start the process."""
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def await_line(self, part: str) -> None:
        """Wait until the process has printed this; fails when it ends before."""
        until(lambda: part in self.said() or self.process is None or self.process.poll() is not None, SLOW)
        assert part in self.said(), self.said()

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and wait; returns the exit code."""
        assert self.process is not None
        self.family()
        self.process.send_signal(number)
        return self.process.wait(SLOW)

    def family(self) -> set[psutil.Process]:
        """All running processes below the service; they are remembered, for a check when it has ended."""
        assert self.process is not None
        living = (
            set(psutil.Process(self.process.pid).children(recursive=True)) if self.process.poll() is None else set()
        )
        self._seen |= living
        return living

    def left(self) -> list[psutil.Process]:
        """Processes below the service, ever seen, that still run."""
        return [process for process in self._seen if runs(process)]

    def parts(self, role: str) -> list[psutil.Process]:
        """Children of the service of a role: gateway, worker or Valkey."""
        self.family()
        return [child for child in psutil.Process(there(self.process).pid).children() if role_of(child) == role]

    def named(self, role: str) -> list[psutil.Process]:
        """As ``parts``, each with its children after it."""
        return [process for child in self.parts(role) for process in (child, *children(child, recursive=True))]

    def kill(self, role: str) -> None:
        """Send SIGKILL to a part and its children."""
        found = self.named(role)
        assert found, f"there is no {role}"
        for process in found:
            kill(process)

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def upload(self, body: bytes, name: str) -> Any:
        answer = self.client.post(
            "/v1/datasets", params={"name": name}, content=body, headers={"Content-Type": "application/x-npz"}
        )
        assert answer.status_code == 201, answer.text
        return answer.json()

    def labels(self, job: str) -> list[Any]:
        answer = self.client.get(f"/v1/jobs/{job}/labels")
        answer.raise_for_status()
        return [json.loads(line) for line in answer.text.splitlines()]

    def wait_for(self, job: str, *states: str) -> Any:
        """The job once it is in one of the states, by default any final one; requests without an answer are
        repeated."""
        wanted = states or ("succeeded", "failed", "cancelled")

        def there() -> bool:
            try:
                return self.get(f"/v1/jobs/{job}")["state"] in wanted
            except httpx.HTTPError:
                return False

        until(there, SLOW)
        return self.get(f"/v1/jobs/{job}")


def words_of(process: psutil.Process) -> list[str]:
    """The command line, empty for a process that has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # a zombie is one too
        return []


def role_of(process: psutil.Process) -> str:
    """The role of a process in the service."""
    words = words_of(process)
    if "api" in words:
        return "api"
    try:
        return {"halfmoon-worker": "worker", "valkey-server": "valkey-server"}.get(process.name(), "")
    except psutil.NoSuchProcess:
        return ""


def description(process: psutil.Process) -> str:
    """Command, parent, state and age of a process."""
    try:
        parent, status, age = process.ppid(), process.status(), time.time() - process.create_time()
    except psutil.NoSuchProcess:
        return "one that has just ended"
    return f"{process.name()}, {' '.join(words_of(process)[-2:])!r}, a child of {parent}, {status}, {age:.1f} s old"


def large(n_documents: int = 30_000, n_features: int = 20_000, per_document: int = 60, labeled: int = 200) -> bytes:
    """Documents of two overlapping topics, some labeled, as npz: by default a training of several seconds."""
    chance = np.random.default_rng(7)
    topic = chance.integers(0, 2, n_documents)
    indices = chance.integers(0, n_features, (n_documents, per_document))
    own = chance.random((n_documents, per_document)) < 0.05
    indices = np.where(own, indices // 2 + topic[:, None] * (n_features // 2), indices)
    rows = csr_array(
        (
            chance.random(n_documents * per_document),
            indices.ravel(),
            np.arange(0, n_documents * per_document + 1, per_document),
        ),
        (n_documents, n_features),
    )
    rows.sum_duplicates()
    labels = np.where(np.arange(n_documents) < labeled, np.array(["left", "right"])[topic], "")
    return as_npz(rows, labels=labels)


def as_npz(rows: csr_array, **more: Any) -> bytes:
    """A body of these rows, as SciPy saves them, and more arrays."""
    buffer = io.BytesIO()
    shape = np.array(rows.shape)
    np.savez(buffer, indptr=rows.indptr, indices=rows.indices, data=rows.data, shape=shape, **more)
    return buffer.getvalue()


def started(service: Service, body: bytes, model: str = "m") -> str:
    """Id of a job that runs and has progress."""
    dataset = service.upload(body, "large")
    job: str = service.post("/v1/jobs", {"dataset": dataset["id"], "model": model, "algorithm": "tsvm"})["id"]
    until(lambda: service.get(f"/v1/jobs/{job}")["progress"]["fraction"] > 0, SLOW)
    return job
