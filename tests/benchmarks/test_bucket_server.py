"""Listings of the storm's S3 server are the same as by localbucket, which reads the whole bucket for each."""

from pathlib import Path
from typing import Any

import localbucket
import pytest

from benchmarks.store_storm.bucket_server import Handler

KEYS = ["a/1.json", "a/1/x", "a/1/y/z", "a/10", "a/2", "ab", "b/c/d/e", "b/c/d/f", "b/g", "z"]
PREFIXES = ["", "a", "a/", "a/1", "a/1/", "b/c", "b/c/d/", "c/", "q"]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buckets") / "one"
    for key in KEYS:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(b"")
    (folder / "a" / "empty" / "too").mkdir(parents=True)
    (folder / "b" / f"{localbucket.TEMP_PREFIX}1").write_bytes(b"")
    return folder


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("delimiter", ["", "/"])
@pytest.mark.parametrize("max_keys", [1, 2, 1000])
def test_pages_are_the_same(bucket: Path, prefix: str, delimiter: str, max_keys: int) -> None:
    own, plain = (cls.__new__(cls)._list_entries for cls in (Handler, localbucket.S3Handler))
    marker, follows = "", True
    while follows:
        page: Any = (bucket, prefix, delimiter, marker, bool(delimiter) and marker.endswith(delimiter), max_keys)
        found = own(*page)
        assert found == plain(*page)
        follows, marker = found[2], found[3][2:]
