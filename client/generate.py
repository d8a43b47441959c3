"""Writes the client that waits (``halfmoon._sync``) from the one that is awaited (``halfmoon._async``):

``python client/generate.py``. A build or an installation of the package does it, too (``hatch_build.py``).
"""

import re
from pathlib import Path

PACKAGE = Path(__file__).parent / "src" / "halfmoon"
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
    return source


def main() -> None:
    """Write all modules that are missing or differ, and remove those that were generated from one that is gone."""
    target, sources = PACKAGE / "_sync", list((PACKAGE / "_async").glob("*.py"))
    target.mkdir(exist_ok=True)
    for path in {*target.glob("*.py")} - {target / source.name for source in sources}:
        path.unlink(missing_ok=True)
    for path in sources:
        source, written = waiting(path.read_text()), target / path.name
        if not written.exists() or written.read_text() != source:
            written.write_text(source)


if __name__ == "__main__":
    main()
