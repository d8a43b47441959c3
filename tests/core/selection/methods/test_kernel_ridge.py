"""Kernel ridge regression as a candidate: against linear algebra, where no linear boundary is right, and as a model."""

import io
import zipfile

import numpy as np
import pytest

from core.errors import ModelTooLarge
from core.exports.archive import write_archive
from core.exports.predict import Classifier
from core.models.io import read_model
from core.models.kernel import KernelModel
from core.phases import phase_in_words
from core.problem import Status
from core.progress import Checkpoint
from core.selection.methods.kernel_ridge import RIDGES, WIDTHS, KernelRidge
from tests.core.problems import dense_of, rows_of
from tests.core.selection.pools import Pool, error, fit, kernel_of, selection_data_of, variation
from tests.core.watcher import Watcher
from tests.there import there


def around(seed: int, per_class: int = 12, n: int = 400, scales: float = 1.0, share: float = 0.5) -> Pool:
    """Two clouds around one centre, in 8 features, the second wider: no plane parts them, and neighbours mislead.

    ``scales``: the first feature is so many times as large, and far from 0.
    """
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(np.int64)
    dense = rng.standard_normal((n, 8)) * np.where(truth == 1, 3.0, 1.0)[:, None]
    dense[:, 0] = dense[:, 0] * scales + (50 * scales if scales > 1 else 0.0)
    return Pool.of(rows_of(dense), truth, per_class)


def fitted_to(pool: Pool, checkpoint: Checkpoint = lambda: None) -> KernelRidge:
    data = selection_data_of(pool)
    return KernelRidge(data, kernel_of(data), checkpoint)


def test_fits_are_as_linear_algebra_has_them() -> None:
    data = selection_data_of(around(0, n=60))
    fitted = KernelRidge(data, kernel_of(data), lambda: None)
    kernel, ridge = fitted.best
    dense, y = dense_of(data.scaled.rows).astype(float), data.problems[0].y
    assert ridge in RIDGES
    values = np.exp(-kernel.gamma * ((dense[:, None] - dense[: len(y)]) ** 2).sum(axis=2))
    for fold in range(data.n_folds):
        kept = data.folds != fold
        costs = np.where(y[kept] > 0, 0.5 / np.mean(y[kept] > 0), 0.5 / np.mean(y[kept] < 0))
        weights = np.linalg.solve(values[: len(y)][np.ix_(kept, kept)] + ridge * np.diag(1 / costs), y[kept])
        scores = values[:, kept] @ weights
        np.testing.assert_allclose(
            fitted.held_out[~kept, 0] * fitted._deviations[0], scores[: len(y)][~kept], atol=1e-6
        )
        np.testing.assert_allclose(fitted.of_two.unlabeled[fold] * fitted._deviations[0], scores[len(y) :], atol=1e-6)


def test_of_equals_the_smoother_is_taken() -> None:
    """With a label of each class none can be left out."""
    fitted = fitted_to(around(0, per_class=1))
    assert fitted.best.ridge == max(RIDGES)
    narrow = fitted_to(around(0, per_class=12))
    assert narrow.best.kernel.gamma / fitted.best.kernel.gamma in [width / min(WIDTHS) for width in WIDTHS]


@pytest.mark.parametrize("scales", [1.0, 1000.0])
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_auto_follows_what_no_plane_parts(share: float, scales: float) -> None:
    data, others = around(1, share=share, scales=scales), around(2, share=share, scales=scales)
    training = fit(data)
    assert there(training.report)["chosen"]["algorithm"] == "kernel_ridge"
    assert training.status is Status.CONVERGED
    assert variation(training, data) < 0.12
    assert error(training, data) < 0.15 < 0.3 < error(fit(data, "tsvm", {"positive_fraction": share}), data)
    assert np.mean(training.model.labels_of(training.model.scores(others.rows)) != others.truth) < 0.15
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores, atol=1e-3)
    assert [str(point.phase) for point in training.trace] == ["regression", "regression"]


def test_a_model_keeps_the_scales_of_its_features() -> None:
    """Stored, with other numbers of its features, and exported."""
    data = around(1, scales=1000.0)
    model = fit(data).model
    assert isinstance(model, KernelModel)
    assert model.scales is not None
    expected = model.scores(data.rows)
    np.testing.assert_array_equal(read_model(*model.to_arrays()).scores(data.rows), expected)
    turned = data.rows._replace(indices=(7 - data.rows.indices).astype(np.uint32))
    np.testing.assert_allclose(model.renumbered(np.arange(8)[::-1]).scores(turned), expected, atol=1e-9)
    file = io.BytesIO()
    write_archive(model, {}, file)
    with zipfile.ZipFile(file) as archive:
        np.testing.assert_allclose(Classifier(archive.read).decision_function(dense_of(data.rows)), expected, atol=1e-9)
    nearest = model.contributions(data.rows.between(0, 1), 0)
    assert float(nearest.amounts.sum()) + nearest.intercept == pytest.approx(float(expected[0, 0]))


def test_a_model_that_is_too_large_is_refused() -> None:
    with pytest.raises(ModelTooLarge):
        fit(around(1), max_model_bytes=1000)


@pytest.mark.usefixtures("every_report")
def test_while_it_is_compared_progress_says_so() -> None:
    watcher = Watcher()
    fit(around(1, n=100), observer=watcher)
    phases = list(dict.fromkeys(phase_in_words(point) for point in watcher.points))
    compared = [f"comparison of methods: {name}" for name in ("label spreading", "kernel ridge regression")]
    assert [phase for phase in phases if phase in compared] == compared
    own = [point for point in watcher.points if phase_in_words(point) in compared]
    assert not np.isfinite([point.objective for point in own]).any()  # that of the solver before is not theirs
    assert [point.fraction for point in watcher.points] == sorted(point.fraction for point in watcher.points)


def test_work_asks_between_slices() -> None:
    calls: list[int] = []
    fitted_to(around(0), lambda: calls.append(1))
    assert len(calls) > 27
