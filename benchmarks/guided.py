"""Bodies that are made up by what the readers do with them: ``python -m benchmarks.guided [seconds]`` writes a part of
``docs/fuzzing.md``.

libFuzzer changes good bodies, and keeps those that reach new code. It needs ``pip install atheris``. Each reader gets
so many seconds in a process of its own, ``python -m benchmarks.guided READER SECONDS FOLDER``.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks.base import machine, put_section, table

_TENSORS = "tensors of the Open Inference Protocol"
READERS = ("application/json", "application/x-npz", "application/x-tar", "text/csv", _TENSORS)
"""The readers that are the project's own; those of a media type are given bodies of it."""
_FIGURES = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+)")


def _target(reader: str) -> tuple[Callable[[bytes], None], list[bytes]]:
    """Fails for a body with an outcome that depends on its cut, or that is neither documents nor a named error."""
    from tests.app.codecs.good_bodies import GOOD
    from tests.app.codecs.outcomes import cut, inferred, outcome, parsed

    def tensors(body: bytes) -> None:
        outcome(lambda: inferred(body))

    def documents(body: bytes) -> None:
        place, body = int.from_bytes(body[:2]), body[2:]
        assert outcome(lambda: parsed(reader, cut(body, [place, place // 3]))) == outcome(
            lambda: parsed(reader, [body])
        )

    if reader != _TENSORS:
        return documents, [bytes(2) + body for body in GOOD[reader]]
    tensor = {"name": "X", "shape": [2, 2], "datatype": "FP32", "data": [1, 0.5, [-2e3], 0]}
    return tensors, [json.dumps({"inputs": [tensor]}).encode()]


def _run(reader: str, seconds: str, folder: str) -> None:
    """Change bodies until the time is over, or one fails."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["app.codecs", "app.inference", "core.documents"]):
        target, bodies = _target(reader)
    for number, body in enumerate(bodies):
        Path(folder, str(number)).write_bytes(body)
    options = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", f"-artifact_prefix={folder}/failed-"]
    atheris.Setup(["guided", folder, f"-max_total_time={seconds}", *options], target)
    atheris.Fuzz()


def main(arguments: list[str]) -> int:
    """The exit code says whether a body has failed."""
    seconds = arguments[0] if arguments else "120"
    rows, failed = list[list[object]](), 0
    for reader in READERS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.guided", reader, seconds, folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found = list(Path(folder).glob("failed-*"))
        counts = _FIGURES.findall(done.stderr) or [("not ended", "")]
        rows.append([reader, *counts[-1], len(found)])
        if done.returncode:
            failed += 1
            print(done.stdout, done.stderr[-5000:], sep="\n")
    text = (
        "## Bodies by what they reach\n\n"
        "libFuzzer changes good bodies, and keeps those that reach new code of the readers. A body must end in "
        "documents or in a named error, the same however it is cut.\n"
        f"Made by `python -m benchmarks.guided {seconds}`, with so many seconds for each reader, on: {machine()}.\n\n"
        + table(["reader", "bodies", "edges reached", "failed"], rows)
    )
    put_section("fuzzing.md", text)
    return failed


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _run(*sys.argv[1:])
    sys.exit(main(sys.argv[1:]))
