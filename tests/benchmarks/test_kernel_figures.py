"""What the kernel family's figures rest on, and those of them that take a moment: the paper's sets with few labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from benchmarks.base import rows_of
from benchmarks.data import FOLDER
from benchmarks.kernel.fits import Fit, fit_draw, fit_split, median_gamma
from benchmarks.kernel.large import ADULT, hinge_objective
from benchmarks.kernel.plots import slope
from benchmarks.kernel.sets import DRAWS, LABEL_NOISE, Split, banana, coil_draws, official_draws, usps_noise


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not (FOLDER / name).is_dir(), reason=f"{FOLDER} has no {name}: set HALFMOON_DATA")


def mean_error(fits: list[Fit]) -> float:
    return float(np.mean([fit.error for fit in fits]))


@pytest.mark.data
@needs("g50c")
def test_g50c_of_table_13() -> None:
    draws = DRAWS["g50c"]()
    hinge, transductive = (
        [fit_draw(draw, name, options) for draw in draws]
        for name, options in (("kernel_svm", {"C": 10.0, "gamma": 0.00048}), ("cccp_tsvm", {"C": 1.0, "gamma": 0.0048, "s": -0.1}))
    )
    assert len(draws) == 10
    assert 0.08 <= mean_error(hinge) <= 0.095
    assert mean_error(transductive) <= 0.0504 + 0.015


@pytest.mark.data
@needs("ssl-g241c")
@pytest.mark.parametrize(("name", "errors"), [("ssl-g241c", (0.214, 0.239, 0.222)), ("ssl-digit1", (0.075, 0.063, 0.083))])
def test_the_hinge_svm_errs_like_libsvm(name: str, errors: tuple[float, ...]) -> None:
    draws = official_draws(name, "labeled100", 3)
    found = [fit_draw(draw, "kernel_svm", {"C": 10.0, "gamma": "median"}).error for draw in draws]
    np.testing.assert_allclose(found, errors, atol=0.003)


@pytest.mark.data
@needs("coil20")
def test_coil_draws_have_two_labels_a_class() -> None:
    draws = coil_draws()
    assert len({tuple(draw.labeled) for draw in draws}) == 10
    for draw in draws:
        np.testing.assert_array_equal(np.unique(draw.y[draw.labeled], return_counts=True)[1], 2)
        assert len(draw.unlabeled) == 1400


@pytest.mark.data
@needs("usps")
def test_a_tenth_of_the_training_labels_is_noise_and_no_test_label() -> None:
    one, other = usps_noise(0), usps_noise(1)
    np.testing.assert_array_equal(one.y_test, other.y_test)
    # of two draws of a tenth, a fifth less twice a hundredth differ
    assert np.mean(one.y != other.y) == pytest.approx(2 * LABEL_NOISE * (1 - LABEL_NOISE), abs=0.01)


def test_the_banana_is_as_hard_as_that_of_the_paper() -> None:
    fit = fit_split(banana(0), "kernel_svm", {"C": 1.0, "gamma": 0.63})
    assert 0.085 <= fit.error <= 0.105
    assert 900 <= fit.n_support <= 1150


def test_the_objective_is_the_one_that_training_tells() -> None:
    rng = np.random.default_rng(0)
    documents = sp.csr_matrix(rng.standard_normal((200, 5)).astype(np.float32))
    split = Split(documents, np.where(rng.random(200) < 0.5, 1, -1), documents, np.ones(200, np.int64))
    fitted = SVC(C=ADULT["C"], gamma=ADULT["gamma"], tol=1e-6).fit(documents, split.y)
    theirs = hinge_objective(split, documents[fitted.support_], fitted.dual_coef_.toarray()[0], float(fitted.intercept_[0]))
    assert fit_split(split, "kernel_svm", {**ADULT, "tolerance": 1e-6}).training.objective == pytest.approx(theirs, rel=1e-5)


def test_the_unit_of_gamma_is_the_median_distance() -> None:
    dense = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    distances = np.sqrt(((dense[:, None] - dense[None]) ** 2).sum(axis=2))[np.triu_indices(50, 1)]
    assert median_gamma(rows_of(dense)) == pytest.approx(1 / (2 * np.median(distances) ** 2), rel=1e-5)


def test_the_slope_of_a_parabola_is_two() -> None:
    assert slope([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2)
