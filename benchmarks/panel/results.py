"""Results of the panel on disk: a result is not computed again while the code that it rests on is the same."""

import ast
import hashlib
import json
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.data import BUILD

_ROOT = Path(__file__).parents[2]
_FOLDER = BUILD / "panel" / "results"


class OutOfTime(Exception):
    """A result is not there, and no time is left to compute it."""


class Results:
    """Results by name, each computed when it is first asked for; after ``deadline``, by ``time.time``, none is
    computed.
    """

    def __init__(self, deadline: float | None = None, folder: Path = _FOLDER) -> None:
        self._deadline, self._folder = deadline, folder

    def get(self, name: str, basis: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of ``compute``, JSON, kept under a name that begins with its folder; ``basis`` is a digest of all
        that it rests on.

        Raises OutOfTime.
        """
        file = self._folder / f"{name}-{basis}.json"
        if file.exists():
            return dict(json.loads(file.read_bytes()))
        if self._deadline is not None and time.time() > self._deadline:
            raise OutOfTime
        found = compute()
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{os.getpid()}-{file.name}")
        partial.write_text(json.dumps(found))
        partial.replace(file)
        return found


def digest(*parts: bytes | str) -> str:
    """A short name for these parts."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else part.encode())
        whole.update(b"\0")
    return whole.hexdigest()[:16]


@cache
def code_digest(*paths: str, without: str = "") -> str:
    """The digest of the Python code at paths of the repository, folders or files; files below the folder ``without``
    are left out.
    """
    files = sorted(
        {file for path in paths for file in ([_ROOT / path] if path.endswith(".py") else (_ROOT / path).rglob("*.py"))}
    )
    kept = [file for file in files if not without or _ROOT / without not in file.parents]
    return digest(*(part for file in kept for part in (str(file.relative_to(_ROOT)), code_of(file.read_text()))))


def code_of(source: str) -> str:
    """The code of a source, without comments, docstrings and layout, which change no result."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [
                each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
    return ast.dump(tree)
