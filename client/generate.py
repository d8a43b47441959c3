"""Writes the client that waits (``halfmoon._sync``) from the one that is awaited (``halfmoon._async``):

``python client/generate.py``.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent / "src" / "halfmoon"
_WORDS = (
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"(\[\w+) async for\b", r"\1 for"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Client)\b", r"\1"),
    (r"\bAsync([A-Z]\w+)", r"\1"),
    (r"\b_async(_only)?\b", r"_sync\1"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_(\w+)", r"iter_\1"),
    (
        r"The client that is awaited\.[^\"]*",
        "The client that waits. It is generated from ``halfmoon._async`` by ``client/generate.py``; change that one.",
    ),
)


def waiting(source: str) -> str:
    """The source of a module of the client that waits."""
    for pattern, replacement in _WORDS:
        source = re.sub(pattern, replacement, source)
    source = re.sub(r"from collections.abc import (.*)", _each_once, source)
    return _formatted(source)


def _each_once(found: re.Match[str]) -> str:
    return f"from collections.abc import {', '.join(sorted(set(found[1].split(', '))))}"


def _formatted(source: str) -> str:
    for command in (["check", "--fix", "--exit-zero", "--quiet", "--select", "I"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(HERE / "_sync" / "module.py"), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def main() -> None:
    """Write all modules."""
    for path in sorted((HERE / "_async").glob("*.py")):
        (HERE / "_sync" / path.name).write_text(waiting(path.read_text()))


if __name__ == "__main__":
    main()
