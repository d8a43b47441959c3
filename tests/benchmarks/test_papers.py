"""Foundations of the papers' figures, and the quick ones of the figures."""

import numpy as np
import pytest

from benchmarks.data import FOLDER
from benchmarks.papers import LABEL_NOISE, RUNS, SETS, Run, banana, drawn_evenly, draws_of, trained, usps_noise


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
