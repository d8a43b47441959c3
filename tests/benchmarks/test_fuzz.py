"""The page on fuzzing counts the tests that exist."""

from pathlib import Path
from random import Random

from benchmarks.damaged import damaged
from benchmarks.fuzz import PROPERTIES


def test_every_counted_file_has_hypothesis_tests(repository: Path) -> None:
    files = [repository / name for names in PROPERTIES.values() for name in names]
    assert files
    assert [file for file in files if "@given(" not in file.read_text()] == []


def test_damaged_bodies_are_the_same_each_time_and_not_the_good_one() -> None:
    good = [b"text,label\na,b\n"]
    made = [damaged(good, Random(seed)) for seed in range(50)]
    assert made == [damaged(good, Random(seed)) for seed in range(50)]
    assert len({*made}) > 40
    assert sum(body == good[0] for body in made) < 5
