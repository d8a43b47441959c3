"""The panel: ways to come by labels, the order of its tasks, its measures, results on disk, and page."""

import csv
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from app.predictions.schemas import Strategy
from benchmarks.panel import draws
from benchmarks.panel import tasks as panel
from benchmarks.panel.analysis import gap, over_sets
from benchmarks.panel.automatic import answered, suggested
from benchmarks.panel.draws import Labels
from benchmarks.panel.fractions import Line, figures_of, section
from benchmarks.panel.page import draw_figure, page
from benchmarks.panel.peers import PEERS
from benchmarks.panel.results import OutOfTime, Results, code_digest, code_of
from benchmarks.panel.runs import AS_MANY, AUTO, SURPLUS, SVM, TSVM, Run
from benchmarks.panel.score import Score, class_fractions, error, kappa, total_variation
from benchmarks.panel.sets import LABELS, Documents
from benchmarks.panel.tasks import A_ROUND, DRAWS, STRATEGIES, Task
from core.documents.drawn import Draw
from core.documents.rows import SparseRows
from core.train import Training, TrainingContext, TrainingTask, train
from core.validation.confidence import Confidence

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


TRUTH = np.random.default_rng(0).choice(3, 600, p=[0.7, 0.2, 0.1]).astype(np.int32)


def counts(labels: Labels) -> list[int]:
    return list(labels.counts(3).tolist())


def is_sound(labels: Labels) -> bool:
    """No document twice, every class there, nothing known of how labels were come by."""
    return (
        len(np.unique(labels.positions)) == len(labels.told)
        and min(counts(labels)) > 0
        and (labels.drawn == Draw.UNKNOWN).all()
    )


def is_true(labels: Labels) -> bool:
    return np.array_equal(labels.told, TRUTH[labels.positions])


@pytest.mark.parametrize("seed", range(3))
def test_even_labels_are_as_many_of_each_class_and_others_for_another_seed(seed: int) -> None:
    labels = draws.even(TRUTH, 7, seed)
    assert is_sound(labels)
    assert is_true(labels)
    assert counts(labels) == [7, 7, 7]
    assert not np.array_equal(np.sort(labels.positions), np.sort(draws.even(TRUTH, 7, seed + 10).positions))


def test_random_labels_follow_the_classes_and_lack_none() -> None:
    truth = np.repeat([0, 1], [950, 50]).astype(np.int32)
    found = [draws.random(truth, 20, seed).counts(2) for seed in range(50)]
    assert {int(each.sum()) for each in found} == {20}
    assert min(int(each.min()) for each in found) == 1
    assert 0.05 < np.sum(found, axis=0)[1] / 1000 < 0.12


@pytest.mark.parametrize(("ratio", "expected"), [(2, [15, 8, 7]), (3, [18, 6, 6]), (5, [21, 5, 4])])
def test_skewed_labels_are_as_many_in_all_and_favour_one_class(ratio: int, expected: list[int]) -> None:
    for favoured in range(3):
        labels = draws.skewed(TRUTH, 10, favoured, ratio, seed=1)
        assert is_sound(labels)
        assert is_true(labels)
        assert counts(labels)[favoured] == expected[0]
        assert sorted(counts(labels), reverse=True) == expected


def test_more_labels_come_after_the_even_ones() -> None:
    first = draws.even(TRUTH, 5, seed=2)
    labels = draws.more(TRUTH, 5, 1, seed=2)
    assert is_sound(labels)
    assert is_true(labels)
    assert counts(labels) == [5, 5 + draws.MORE, 5]
    assert np.array_equal(labels.positions[:15], first.positions)
    assert np.array_equal(np.sort(draws.evened(labels, 3).positions), np.sort(first.positions))


def test_surplus_labels_are_the_last_ones_of_their_class() -> None:
    labels = Labels(np.arange(7), np.array([0, 1, 1, 0, 1, 0, 0], np.int32), np.zeros(7, np.int8))
    assert draws.evened(labels, 2).positions.tolist() == [0, 1, 2, 3, 4, 5]


def test_found_documents_hold_a_word_of_their_class() -> None:
    rng = np.random.default_rng(3)
    held = rng.random((600, 40)) < 0.05
    for each in range(3):  # five words mark each class, in half of its documents
        own = np.flatnonzero(each == TRUTH)
        held[own, 5 * each : 5 * each + 5] |= rng.random((len(own), 5)) < 0.3
    matrix = sp.csr_matrix(held.astype(np.float32))
    labels = draws.found(TRUTH, matrix, 8, seed=0)
    assert is_sound(labels)
    assert is_true(labels)
    assert counts(labels) == [8, 8, 8]
    for each in range(3):
        assert sorted(draws.words_of(TRUTH, matrix, each).tolist()) == list(range(5 * each, 5 * each + 5))
    assert all(
        held[position, 5 * each : 5 * each + 5].any()
        for position, each in zip(labels.positions, labels.told, strict=True)
    )


@pytest.mark.parametrize(("per_class", "expected"), [(2, 1), (20, 3)])
def test_a_share_of_the_labels_is_wrong(per_class: int, expected: int) -> None:
    labels = draws.wrong(TRUTH, per_class, seed=4)
    assert is_sound(labels)
    assert np.array_equal(labels.positions, draws.even(TRUTH, per_class, seed=4).positions)
    assert np.count_nonzero(labels.told != TRUTH[labels.positions]) == expected


def test_the_largest_the_smallest_and_a_class_in_the_middle_are_favoured() -> None:
    assert draws.favoured_classes(np.repeat([0, 1, 2, 3, 4], [30, 50, 10, 20, 40])) == [1, 2, 0]
    assert draws.favoured_classes(np.repeat([0, 1], [10, 90])) == [1, 0]


SETS = ["words", "numbers", "classes"]


def documents(name: str) -> Documents:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4 if name == "classes" else 2, 400).astype(np.int32)
    density = 0.5 if name == "numbers" else 0.05
    return Documents(sp.csr_matrix(sp.random(400, 50, density, random_state=0)), truth, np.unique(truth).tolist())


@pytest.fixture
def toy_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The panel has small made-up sets."""
    monkeypatch.setattr(panel, "documents", documents)
    monkeypatch.setattr(panel, "LABELS", dict.fromkeys(SETS, 10))


@pytest.mark.usefixtures("toy_sets")
def test_every_beginning_has_sets_and_draws_evenly() -> None:
    times = {"even-half", "even-twice", "random-half", "random-twice"}
    found = list(panel.tasks(SETS, list(DRAWS), 2))
    assert len(found) == len(set(found))
    assert {task.draw for task in found if task.name == "classes"} == {*DRAWS} - times
    assert {*DRAWS} - {task.draw for task in found if task.name == "numbers"} == {"found", "more-middle"} | times
    for end in range(6, len(found)):
        of_sets = Counter(task.name for task in found[:end])
        assert max(of_sets.values()) - min(of_sets.values()) <= 8  # some draws are of many classes alone
    halves = Counter(task.draw for task in found[: len(DRAWS)])
    assert max(halves.values()) <= 3


@pytest.mark.usefixtures("toy_sets")
def test_a_large_set_comes_seldom_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "LARGE", ("classes",))
    found = list(panel.tasks(SETS, list(DRAWS), 1))
    assert {*found} == {*_as_if_small(monkeypatch)}
    assert sum(task.name == "classes" for task in found[: len(found) // 2]) <= 4


def _as_if_small(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    monkeypatch.setattr(panel, "LARGE", ())
    return list(panel.tasks(SETS, list(DRAWS), 1))


@pytest.mark.usefixtures("toy_sets")
@pytest.mark.parametrize("draw", DRAWS)
def test_labels_of_a_task_are_the_same_again(draw: str) -> None:
    first, second = (panel.labels_of(Task("classes", draw, 3)) for _ in range(2))
    assert np.array_equal(first.positions, second.positions)
    factor = {"half": 0.5, "twice": 2}.get(draw.split("-")[-1], 1)
    assert len(first.told) == (55 if draw.startswith("more") else 40 * factor)


@pytest.fixture(scope="module")
def rows() -> SparseRows:
    rng = np.random.default_rng(1)
    values = (rng.standard_normal((300, 4)) + np.repeat([[2.0], [-2.0]], 150, axis=0)).astype(np.float32)
    return SparseRows(
        np.arange(0, 1201, 4, dtype=np.int64), np.tile(np.arange(4, dtype=np.uint32), 300), values.ravel(), 4
    )


@pytest.fixture(scope="module")
def training(rows: SparseRows) -> Training:
    known = np.full(300, -1, np.int32)
    known[[*range(10), *range(150, 160)]] = np.repeat([0, 1], 10)
    return train(TrainingTask(rows, known, [0, 1], "auto", {}), TrainingContext(threads=1))


@pytest.mark.usefixtures("toy_sets")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_round_is_mixed_with_random_documents_as_the_service_does(
    training: Training, rows: SparseRows, strategy: Strategy
) -> None:
    found = suggested(training, rows, strategy, A_ROUND, seed=0)
    assert len(found) == A_ROUND
    assert {*found} <= set(training.unlabeled.tolist())
    assert sum(draw is Draw.RANDOM for draw in found.values()) == (A_ROUND if strategy == "random" else 5)
    truth = np.repeat([0, 1], 150).astype(np.int32)
    labels = answered(found, truth)
    assert labels.positions.tolist() == list(found)
    assert labels.drawn.tolist() == list(found.values())
    assert np.array_equal(labels.told, truth[labels.positions])


@pytest.mark.usefixtures("toy_sets")
@pytest.mark.parametrize("known", [Confidence(20, 9, 0.5), Confidence(5, 5, 0.5)])
def test_a_model_that_knows_too_little_suggests_random_documents(
    training: Training, rows: SparseRows, known: Confidence
) -> None:
    assert {*suggested(replace(training, confidence=known), rows, "uncertain", A_ROUND, seed=0).values()} == {
        Draw.RANDOM
    }


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
