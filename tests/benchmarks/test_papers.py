"""Foundations of the papers' figures: the quick ones, the table of all systems, and the yardsticks."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import systems
from benchmarks.data import FOLDER
from benchmarks.papers import LABEL_NOISE, RUNS, SETS, Draw, Run, banana, drawn_evenly, draws_of, trained, usps_noise
from benchmarks.yardsticks import METHODS, SUPERVISED, moons, true_objective
from core.registry import ALGORITHMS
from tests.core.problems import rows_of, small


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not (FOLDER / name).is_dir(), reason=f"{FOLDER} has no {name}: set HALFMOON_DATA")


def errors(paper: str, name: str, algorithm: str) -> list[float]:
    """Mean errors of the runs of a method on a set."""
    runs = [run for run in RUNS[paper]() if (run.set, run.algorithm) == (name, algorithm)]
    return [float(np.mean([trained(run, draw)[1] for draw in draws_of(name)])) for run in runs]


def test_every_run_has_its_set() -> None:
    runs = [run for make in RUNS.values() for run in make()]
    assert {run.set for run in runs} == set(SETS)


@pytest.mark.data
@needs("g50c")
def test_g50c_of_table_13() -> None:
    assert len(draws_of("g50c")) == 10
    [hinge] = errors("collobert", "g50c", "kernel_svm")
    assert 0.08 <= hinge <= 0.095
    assert errors("collobert", "g50c", "cccp_tsvm")[1] <= 0.0504 + 0.015


@pytest.mark.data
@needs("ssl-g241c")
@pytest.mark.parametrize(
    ("name", "expected"), [("ssl-g241c", (0.214, 0.239, 0.222)), ("ssl-digit1", (0.075, 0.063, 0.083))]
)
def test_the_hinge_svm_errs_like_libsvm(name: str, expected: tuple[float, ...]) -> None:
    run = Run("universvm", name, "kernel_svm", {"C": 10.0, "gamma": "median"}, "")
    np.testing.assert_allclose([trained(run, draw)[1] for draw in draws_of(name)], expected, atol=0.003)


@pytest.mark.data
@needs("coil20")
def test_coil_draws_have_two_labels_a_class() -> None:
    draws = drawn_evenly("coil20", 2)
    assert len({tuple(draw.labeled) for draw in draws}) == 10
    for draw in draws:
        np.testing.assert_array_equal(np.unique(draw.y[draw.labeled], return_counts=True)[1], 2)
        assert len(draw.unlabeled) == 1400


@pytest.mark.data
@needs("usps")
def test_a_tenth_of_the_training_labels_is_noise_and_no_test_label() -> None:
    one, other = usps_noise(0), usps_noise(1)
    np.testing.assert_array_equal(one.y[one.unlabeled], other.y[other.unlabeled])
    # of two draws of a tenth, a fifth less twice a hundredth differ
    differ = np.mean(one.y[one.labeled] != other.y[other.labeled])
    assert differ == pytest.approx(2 * LABEL_NOISE * (1 - LABEL_NOISE), abs=0.01)


def test_the_banana_is_as_hard_as_that_of_the_paper() -> None:
    training, error = trained(Run("collobert", "Banana", "kernel_svm", {"C": 1.0, "gamma": 0.63}, ""), banana(0))
    assert 0.085 <= error <= 0.105
    assert 900 <= int(training.model.facts()["n_support"]) <= 1150


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
    table_s, *errors = [cell["error"] for cell in systems.kept_cells() if cell["options"]]
    assert f"| toy | `svm` | 1 | {table_s} | {min(float(table_s), *map(float, errors))} | 12.3 |" in pages[1]
    assert "- toy: `" in pages[0]


def test_moons_have_one_label_each_and_the_draws_differ() -> None:
    draws = moons()
    assert len({tuple(draw.labeled) for draw in draws}) > 15
    assert all(sorted(draw.y[draw.labeled]) == [-1, 1] for draw in draws)


def test_methods_take_their_options() -> None:
    for name, options in METHODS.items():
        ALGORITHMS[name].options.parse(options)


@pytest.mark.parametrize("method", SUPERVISED)
@pytest.mark.parametrize("seed", range(3))
def test_no_other_labels_have_the_objective_of_the_true_ones(seed: int, method: str) -> None:
    """On clusters far apart a method ends at the true labels, and so near their objective."""
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(40) % 2 == 0, 1, -1)
    draw = Draw(rows_of(rng.standard_normal((40, 4)) + 4 * truth[:, None]), truth, np.arange(10))
    training, error = trained(Run("", "", method, METHODS[method], "", fractions=True), draw)
    assert error == 0
    assert training.objective == pytest.approx(true_objective(method, draw), rel=2e-2)
    turned = truth.copy()
    turned[20] *= -1
    assert true_objective(method, draw._replace(y=turned)) > true_objective(method, draw)
