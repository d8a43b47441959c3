"""Checksums of files."""

import hashlib
from pathlib import Path


def sha256_of(path: Path) -> tuple[str, int]:
    """SHA-256 of a file, in hexadecimal, and its size in bytes. The file is read in blocks."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()
