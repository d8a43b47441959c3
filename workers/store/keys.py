"""Keys of the store: relative paths of plain segments, so that none can leave the store."""

import re
from collections.abc import Iterable

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,191}"
_KEY = re.compile(rf"{_SEGMENT}(/{_SEGMENT})*")


class KeyMissing(KeyError):
    """Nothing is stored under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def check_key(key: str) -> str:
    """The key, if it is valid; raises ValueError. No segment starts with a dot, so ``..`` and hidden files are out of reach."""
    if not is_key(key):
        raise ValueError(f"not a key: {key!r}")
    return key


def keys_among(names: Iterable[str]) -> list[str]:
    """Names that may be segments of keys, sorted: not ``lost+found``, no hidden file, no copy that an editor has left as ``1.json~``."""
    return sorted({name for name in names if is_key(name)})


def is_key(text: str) -> bool:
    """Whether a text is a valid key."""
    return _KEY.fullmatch(text) is not None
