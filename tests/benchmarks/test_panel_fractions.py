"""Runs of ``auto`` that is told the fractions, beside itself."""

import csv
from pathlib import Path

import numpy as np

from benchmarks.panel.fractions import Line, figures_of, section

GOOD = Line("a", "even", 0, 0.1, 0.2, 0.1, 0.08, 0.05, 0.06, "high")
RANDOM = Line("b", "random-half", 1, 0.2, 0.3, 0.2, 0.18, 0.05, 0.06, "low")
SKEWED = Line("a", "smallest-2", 0, 0.1, 0.4, np.nan, 0.08, 0.05, np.nan, "high")


def missed(*lines: Line) -> list[str]:
    return [figure.what for figure in figures_of(lines) if not figure.reached]


def test_each_bound_is_held_by_every_run() -> None:
    assert missed(GOOD, RANDOM, SKEWED) == []
    assert "supervised SVM; more: 1 of 3; worst: a, smallest-2" in missed(GOOD, RANDOM, SKEWED._replace(svm=0.05))[0]
    assert "simple estimate; more: 1 of 2; worst: a, even" in missed(GOOD._replace(told_simple=0.05), RANDOM)[0]
    assert "random labels" in missed(GOOD, RANDOM._replace(told_true=0.1))[0]
    assert missed(GOOD._replace(told_true=0.05), RANDOM) == [], "others may be further off"
    assert "counts" in missed(GOOD, RANDOM._replace(variation=0.07))[0]


def test_the_section_is_made_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    assert section(file) == ""
    with file.open("w", newline="") as opened:
        lines = csv.writer(opened)
        lines.writerows([Line._fields, GOOD, RANDOM, SKEWED])
    text = section(file)
    assert "3 runs on 2 sets" in text
    assert "worst: b, random-half, seed 1" in text
    assert "MISSED" not in text
