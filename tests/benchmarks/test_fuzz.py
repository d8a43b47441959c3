"""The page on fuzzing counts the tests that exist."""

from pathlib import Path

from benchmarks.fuzz import PROPERTIES


def test_every_counted_file_has_hypothesis_tests(repository: Path) -> None:
    files = [repository / name for names in PROPERTIES.values() for name in names]
    assert files
    assert [file for file in files if "@given(" not in file.read_text()] == []
