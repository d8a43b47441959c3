"""The table of all systems: its lines fit the registry, and each cell is measured once."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import systems
from benchmarks.papers import Draw
from core.registry import ALGORITHMS
from tests.core.problems import small


def test_every_system_takes_its_options() -> None:
    for name, options in systems.SYSTEMS.items():
        for own in options:
            ALGORITHMS[name].options.parse({key: own[key] for key in own if key != "C" or name not in systems.SUMS})
    assert {name for each in systems.SETS.values() for name in each.printed} <= {*systems.SYSTEMS}


def test_a_cell_is_measured_once_and_told_in_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data, asked = small(0, n=40, labeled=10), []

    def draws() -> list[Draw]:
        asked.append(1)
        return [Draw(data.rows, data.truth.astype(int), np.arange(10))]

    pages: list[str] = []
    monkeypatch.setattr(systems, "SETS", {"toy": systems.Set(draws, False, 1, {"svm": "12.3"})})
    monkeypatch.setattr(systems, "SYSTEMS", {name: systems.SYSTEMS[name] for name in ("svm", "tsvm")})
    monkeypatch.setattr(systems, "GRIDS", {"svm": [{"lambda": 0.01}, {"lambda": 100.0}]})
    monkeypatch.setattr(systems, "GRID_SETS", ("toy",))
    monkeypatch.setattr(systems, "CELLS", tmp_path / "cells.csv")
    monkeypatch.setattr(systems, "put_section", lambda name, text: pages.append(text))
    systems.main()
    systems.main()
    assert len(asked) == 5, "one for each system and for each choice of a grid, and none of them again"
    assert pages[:2] == pages[2:]
    assert "(12.3)" in pages[0]
    assert "- toy: `" in pages[0]
    table_s, *errors = [cell["error"] for cell in systems.kept_cells() if cell["options"]]
    assert f"| toy | `svm` | 1 | {table_s} | {min(float(table_s), *map(float, errors))} | 12.3 |" in pages[1]
