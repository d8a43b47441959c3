"""The page of the simulated person: pairs of the same seed, a verdict, and a plot."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import person
from benchmarks.plots import Panel


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two persons of sms-spam with both kinds of documents, one more with random documents alone."""
    monkeypatch.setattr(person, "DOCS", tmp_path)
    errors = {
        ("page", 0): [0.2, 0.1, 0.1, 0.05],
        ("random", 0): [0.2, 0.2, 0.08, 0.05],
        ("page", 1): [0.4, 0.1, 0.1, 0.05],
    }
    errors |= {("random", 1): [0.4, 0.2, 0.08, 0.05], ("random", 2): [0.9, 0.9, 0.9, 0.9]}
    file = tmp_path / "results"
    lines = [{"set": "sms-spam", "person": who, "seed": seed, "errors": found} for (who, seed), found in errors.items()]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_persons_are_compared_in_pairs(results: Path) -> None:
    page, random = person.paired(results, "sms-spam")
    np.testing.assert_allclose(page.mean(axis=0), [0.3, 0.1, 0.1, 0.05])
    np.testing.assert_allclose(random.mean(axis=0), [0.3, 0.2, 0.08, 0.05])


def test_what_is_worse_is_said(results: Path) -> None:
    page = person.page_of(results, ["sms-spam", "20news-bydate"])
    assert "more than 0.01: sms-spam after 80 answers (by 0.020)" in page
    assert "lower by 0.100 after 40, -0.020 after 80" in page
    assert "20news-bydate | page" not in page


def test_the_plot_has_a_panel_a_set(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Panel] = []
    monkeypatch.setattr(person, "draw", lambda panels, target: drawn.extend(panels))
    person.page_of(results, ["sms-spam"])
    (panel,) = drawn
    assert {who: len(errors) for who, (_, errors) in panel.curves.items()} == {"at the page": 4, "random documents": 4}
