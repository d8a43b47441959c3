"""The panel's measures, its results on disk, and its page."""

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.panel.analysis import gap, over_sets
from benchmarks.panel.page import draw_figure, page
from benchmarks.panel.peers import PEERS
from benchmarks.panel.results import OutOfTime, Results, code_digest, code_of
from benchmarks.panel.runs import AS_MANY, AUTO, SURPLUS, SVM, TSVM, Run
from benchmarks.panel.score import Score, class_fractions, error, kappa, total_variation
from benchmarks.panel.sets import LABELS
from benchmarks.panel.tasks import DRAWS, Task

NAME = next(iter(LABELS))


def test_measures() -> None:
    truth = np.array([0, 0, 1, 1])
    assert error(np.array([0, 1, 1, 1]), truth) == 0.25
    assert total_variation(class_fractions(np.array([0, 1, 1, 1]), 2), class_fractions(truth, 2)) == 0.25


def test_kappa_is_what_is_right_beyond_chance() -> None:
    truth = np.array([0, 0, 0, 1])
    assert kappa(truth, truth, 2) == 1.0
    assert kappa(np.zeros(4, np.int64), truth, 2) == 0.0
    assert kappa(np.array([0, 0, 1, 1]), truth, 2) == pytest.approx(0.5)


def test_a_result_is_computed_once_for_the_same_code(tmp_path: Path) -> None:
    results, calls = Results(folder=tmp_path), list[int]()

    def compute() -> dict[str, int]:
        calls.append(1)
        return {"found": len(calls)}

    assert [results.get("set/auto", basis, compute)["found"] for basis in ("a", "a", "b", "a")] == [1, 1, 2, 1]


def test_nothing_is_computed_after_the_deadline(tmp_path: Path) -> None:
    Results(folder=tmp_path).get("known", "a", dict)
    late = Results(time.time() - 1, tmp_path)
    assert late.get("known", "a", dict) == {}
    with pytest.raises(OutOfTime):
        late.get("new", "a", dict)


def test_what_a_result_does_not_rest_on_is_left_out_of_its_digest() -> None:
    assert len({code_digest("core"), code_digest("core", without="core/selection"), code_digest("core/train.py")}) == 3


def test_words_about_the_code_are_not_the_code() -> None:
    source = 'x = 1\n\ndef f(a):\n    """Doubled."""\n    return 2 * a\n'
    assert code_of(source) == code_of('"""A module."""\nx = 1\n"""one"""\ndef f(a):\n    # twice\n    return 2 * a\n')
    assert code_of(source) != code_of(source.replace("2 *", "3 *"))


def run(draw: str, auto: float, rival: float, tsvm: float = 0.1, seed: int = 0) -> Run:
    automatic = Score(auto, 1 - 2 * auto, 3.0, 0.04, 0.02, "tsvm", "high")
    scores = {
        AUTO: automatic,
        SVM: Score(rival, 0.5, 1.0),
        TSVM: Score(tsvm, 0.5, 1.0),
        SURPLUS: automatic._replace(error=rival + 0.01),
        AS_MANY: automatic,
    }
    peers = {peer: Score(rival, 0.5, 1.0) for peer in PEERS} if draw in ("even", "random") else {}
    rounds = [auto + 0.05, auto + 0.03, auto + 0.01, auto] if draw.startswith("suggest") else []
    return Run(Task(NAME, draw, seed), [10, 10], scores | peers, rounds)


def test_the_page_says_what_was_missed() -> None:
    good = page([run(draw, 0.1, 0.2) for draw in DRAWS], len(DRAWS), 1)
    assert "MISSED" not in good
    assert f"{len(DRAWS)} runs;" in good
    bad = page([run(draw, 0.5 if draw == "wrong" else 0.1, 0.2) for draw in DRAWS], 30, 1)
    assert f"{len(DRAWS)} of 30 runs" in bad
    missed = [line for line in bad.splitlines() if "MISSED" in line]
    assert len(missed) == 3
    assert f"worst: {NAME}, wrong" in missed[0]
    assert f"{NAME}, wrong, seed 0, +0.300" in missed[1]
    assert "do not say so" in missed[2]


def test_rounds_that_rise_are_missed() -> None:
    runs = [run(draw, 0.1, 0.2) for draw in DRAWS]
    runs[-2] = runs[-2]._replace(rounds=[0.1, 0.2, 0.1, 0.1])
    missed = [line for line in page(runs, len(runs), 1).splitlines() if "MISSED" in line]
    assert len(missed) == 3
    assert all("round 1" in line for line in missed)


def test_every_set_counts_the_same() -> None:
    runs = [
        run("even", 0.1, 0.2),
        run("random", 0.3, 0.2),
        run("even", 0.4, 0.2)._replace(task=Task("other", "even", 0)),
    ]
    assert over_sets(runs, lambda each: each.scores[AUTO].error) == pytest.approx(0.3)
    assert gap(runs[:2]) == pytest.approx(0.0)


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    draw_figure([run(draw, 0.1, 0.2) for draw in DRAWS], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
