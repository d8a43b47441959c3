"""C and gamma are those that cross-validate best, also by an independent computation, and the report says so."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.svm import SVC

from core.documents.rows import SparseRows
from core.options.kernel import CccpOptions, KernelOptions
from core.options.relaxation import CtsvmOptions
from core.problem import Status
from core.train import Training, TrainingContext, TrainingTask, train
from core.validation import kernel_tuning
from core.validation.folds import folds_of
from core.validation.kernel_tuning import DRAWS_OF_FEW, FEW_LABELS, TUNING_FOLDS, figures, sample
from tests.core.problems import Array, rows_of
from tests.core.watcher import Watcher
from tests.there import there

KERNEL_METHODS = ("kernel_svm", "ramp_svm", "cccp_tsvm", "ctsvm")
every = pytest.mark.parametrize("algorithm", KERNEL_METHODS)


def options_of(algorithm: str, **more: Any) -> dict[str, Any]:
    return (
        more
        | ({"positive_fraction": "labeled"} if "tsvm" in algorithm else {})
        | ({"tolerance": 1e-2} if algorithm == "ctsvm" else {})
    )


def rings(n: int, labeled: int, seed: int = 0) -> tuple[Array, NDArray[np.int32], NDArray[np.int32]]:
    """Two classes that no line separates, one around the other; the first rows are labeled, as many of each class."""
    rng = np.random.default_rng(seed)
    truth = (np.arange(n) % 2).astype(np.int32)
    angles, radii = rng.random(n) * 2 * np.pi, 1.0 + 1.5 * truth + 0.35 * rng.standard_normal(n)
    dense = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]).astype(np.float32).astype(np.float64)
    return dense, truth, np.where(np.arange(n) < labeled, truth, -1).astype(np.int32)


def texts(
    n: int, labeled: int, seed: int = 0, width: int = 1500
) -> tuple[SparseRows, NDArray[np.int32], NDArray[np.int32]]:
    """Rows like TF-IDF of short texts: few, rare terms, a fifth of them of the class, of length 1; somewhat more labels
    of one class.
    """
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.5).astype(np.int32)
    frequency = 1.0 / np.arange(1, width + 1)
    dense = np.zeros((n, width))
    for row, own in enumerate(truth):
        common = rng.choice(width, 30, p=frequency / frequency.sum())
        dense[row, common] += 1.0 / np.sqrt(1 + frequency[common] * n)
        dense[row, 200 + 60 * own + rng.choice(60, 6)] += 1.0
    dense /= np.sqrt((dense**2).sum(axis=1, keepdims=True))
    ones, zeros = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
    chosen = np.concatenate([ones[: round(0.56 * labeled)], zeros[: labeled - round(0.56 * labeled)]])
    labels = np.full(n, -1, np.int32)
    labels[chosen] = truth[chosen]
    return rows_of(dense), truth, labels


def error(training: Training, truth: NDArray[np.int32]) -> float:
    return float(np.mean(training.model.labels_of(training.scores) != truth[training.unlabeled]))


def held_out_by_libsvm(dense: Array, own: NDArray[np.int32], C: float, **kernel: Any) -> tuple[int, float]:
    """Errors on labels left out, and the sum of their logistic losses, over all draws of folds."""
    errors, loss = 0, 0.0
    for draw in range(DRAWS_OF_FEW if len(own) < FEW_LABELS else 1):
        folds = folds_of(own, draw, TUNING_FOLDS)
        for fold in range(TUNING_FOLDS):
            kept = folds != fold
            scores = SVC(C=C, tol=1e-6, **kernel).fit(dense[kept], own[kept]).decision_function(dense[~kept])
            errors += int(np.sum((scores > 0) != (own[~kept] > 0)))
            loss += float(np.log1p(np.exp(-2.0 * np.where(own[~kept] > 0, 1.0, -1.0) * scores)).sum())
    return errors, loss


@pytest.mark.parametrize("labeled", [30, 120], ids=["few", "many"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_choice_is_the_best_of_what_was_tried_also_by_libsvm(kernel: str, labeled: int) -> None:
    dense, _, labels = rings(300, labeled)
    training = train(TrainingTask(rows_of(dense), labels, ["in", "out"], "kernel_svm", {"kernel": kernel}))
    report = there(training.report)
    theirs = {}
    for trial in report["tried"]:
        own = {"kernel": "rbf", "gamma": trial["gamma"]} if kernel == "rbf" else {"kernel": "linear"}
        for C, right in zip(trial["C"], trial["right"], strict=True):
            errors, loss = held_out_by_libsvm(dense[:labeled], labels[:labeled], C, **own)
            theirs[trial.get("gamma"), C] = errors, loss
            # solutions to a tolerance of 1e-2: a document so near to the boundary may fall on either side
            assert abs(report["held_out"]["labels"] * report["held_out"]["draws"] - right - errors) <= 2
    chosen = theirs[report["chosen"].get("gamma"), report["chosen"]["C"]]
    least = min(theirs.values())
    assert chosen[0] <= least[0] + 2
    assert chosen[1] <= min(loss for errors, loss in theirs.values() if errors <= least[0]) * 1.05 + 0.5
    assert training.model.to_arrays()[1]["family"] == ("kernel" if kernel == "rbf" else "linear")
    if kernel == "rbf":
        assert training.model.to_arrays()[1]["kernel"]["gamma"] == report["chosen"]["gamma"]


def test_the_model_is_that_of_the_values_that_the_report_names() -> None:
    dense, _, labels = rings(200, 40)
    for algorithm in KERNEL_METHODS:
        training = train(TrainingTask(rows_of(dense), labels, ["in", "out"], algorithm, options_of(algorithm)))
        values = {name: there(training.report)["chosen"][name] for name in ("C", "gamma")}
        again = train(TrainingTask(rows_of(dense), labels, ["in", "out"], algorithm, options_of(algorithm, **values)))
        np.testing.assert_array_equal(again.scores, training.scores)
        assert "chosen" not in (again.report or {})


@every
def test_what_is_given_is_taken(algorithm: str) -> None:
    dense, _, labels = rings(120, 30)
    for given in ({"C": 3.0}, {"gamma": 0.7}, {"gamma": "scale"}, {"gamma": "median"}):
        training = train(TrainingTask(rows_of(dense), labels, ["in", "out"], algorithm, options_of(algorithm, **given)))
        assert training.report is not None
        assert {*training.report["chosen"]} == {"C", "gamma", "why"} - given.keys()
        assert all(
            trial["C"] == [given.get("C", trial["C"][0])] or "C" not in given for trial in training.report["tried"]
        )
        assert len({trial["gamma"] for trial in training.report["tried"]}) == (4 if "C" in given else 1)


@every
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_texts_with_a_few_more_labels_of_one_class_are_not_all_of_that_class(algorithm: str, kernel: str) -> None:
    rows, truth, labels = texts(300, 50)
    training = train(TrainingTask(rows, labels, ["a", "b"], algorithm, options_of(algorithm, kernel=kernel)))
    assert training.status is Status.CONVERGED
    assert training.warnings == []
    assert error(training, truth) < 0.2
    before = train(
        TrainingTask(rows, labels, ["a", "b"], algorithm, options_of(algorithm, kernel=kernel, C=0.02, gamma="scale"))
    )
    assert error(before, truth) > 0.4


@every
def test_rings_are_told_apart(algorithm: str) -> None:
    dense, truth, labels = rings(200, 40)
    training = train(TrainingTask(rows_of(dense), labels, ["in", "out"], algorithm, options_of(algorithm)))
    assert error(training, truth) < 0.1


@every
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_the_values_plays_no_part(algorithm: str, factor: float) -> None:
    dense, _, labels = rings(120, 30)
    one, other = (
        train(TrainingTask(rows_of(dense * by), labels, ["in", "out"], algorithm, options_of(algorithm)))
        for by in (1.0, factor)
    )
    np.testing.assert_allclose(other.scores, one.scores, atol=0.05)


@every
@pytest.mark.parametrize(("per_class", "classes"), [(1, 2), (1, 3), (2, 2)])
def test_few_labels_suffice(algorithm: str, per_class: int, classes: int) -> None:
    """With one label a class nothing can be left out: the values suit the scale of the documents, and the report says
    so.
    """
    rng = np.random.default_rng(1)
    truth = (np.arange(60) % classes).astype(np.int32)
    dense = 100.0 * (rng.standard_normal((60, 3)) * 0.2 + 2.0 * np.eye(classes, 3)[truth])
    labels = np.where(np.arange(60) < per_class * classes, truth, -1).astype(np.int32)
    options = {"tolerance": 1e-2} if algorithm == "ctsvm" else {}
    training = train(
        TrainingTask(
            rows_of(dense),
            labels,
            list("abc")[:classes],
            algorithm,
            options | ({"class_fractions": "labeled"} if "tsvm" in algorithm else {}),
        )
    )
    assert training.report is not None
    assert ("too few labels" in training.report["chosen"]["why"]) == (per_class == 1)
    assert ("held_out" in training.report) == (per_class > 1)
    assert error(training, truth) < 0.05


def test_one_label_of_one_class_leaves_nothing_to_compare() -> None:
    dense, _, labels = rings(60, 2)
    labels[[2, 4]] = 0
    training = train(TrainingTask(rows_of(dense), labels, ["in", "out"], "kernel_svm", {}))
    assert "only of one class" in there(training.report)["chosen"]["why"]
    assert np.isfinite(training.scores).all()


def test_documents_that_are_all_alike_are_no_error() -> None:
    for dense in (np.zeros((20, 3)), np.ones((20, 3))):
        for algorithm in KERNEL_METHODS:
            for kernel in ("rbf", "linear", "poly"):
                labels = np.where(np.arange(20) < 8, np.arange(20) % 2, -1).astype(np.int32)
                training = train(
                    TrainingTask(rows_of(dense), labels, ["a", "b"], algorithm, options_of(algorithm, kernel=kernel))
                )
                assert np.isfinite(training.scores).all()


@pytest.mark.usefixtures("every_report")
@every
def test_it_is_stopped_in_the_middle_of_the_choice_and_chooses_the_same_afterwards(algorithm: str) -> None:
    dense, _, labels = rings(120, 30)
    task = TrainingTask(rows_of(dense), labels, ["in", "out"], algorithm, options_of(algorithm))
    whole = Watcher()
    first = train(task, TrainingContext(observer=whole))
    choosing = [number for number, point in enumerate(whole.points) if point.phase.purpose == "tuning"]
    fractions = [whole.points[number].fraction for number in choosing]
    assert len(choosing) > 20
    assert len(set(fractions)) > 10
    assert all(before <= after for before, after in pairwise(fractions))
    for stop in choosing[:: len(choosing) // 7]:
        watcher = Watcher(stop_at=stop + 1)
        assert train(task, TrainingContext(observer=watcher)).status is Status.CANCELLED
        assert len(watcher.points) <= stop + 2
    np.testing.assert_array_equal(train(task).scores, first.scores)


def test_all_threads_and_processors_choose_alike() -> None:
    """Dense documents, too, which BLAS multiplies elsewhere: here all kernel values come from compiled loops."""
    dense, _, labels = rings(200, 60)
    tunings = [
        train(
            TrainingTask(rows_of(dense), labels, ["in", "out"], "kernel_svm", {}), TrainingContext(threads=threads)
        ).report
        for threads in (1, 2)
    ]
    assert tunings[0] == tunings[1]


def test_of_many_labels_a_sample_of_every_class_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_tuning, "MOST_LABELS", 40)
    dense, truth, labels = rings(400, 200)
    training = train(TrainingTask(rows_of(dense), labels, ["in", "out"], "kernel_svm", {}))
    assert there(training.report)["held_out"]["labels"] == 40
    assert error(training, truth) < 0.05


def test_a_sample_has_of_each_class_its_share_and_at_least_two() -> None:
    class_indices = np.repeat([0, 1, 2, 3], [900, 95, 4, 1])
    taken = sample(class_indices, 100)
    np.testing.assert_array_equal(np.bincount(class_indices[taken]), [90, 9, 2, 1])
    assert (np.diff(taken) > 0).all()
    np.testing.assert_array_equal(sample(class_indices, 1000), np.arange(1000))


def test_scores_out_of_range_are_all_wrong() -> None:
    y, own = np.array([[1.0], [-1.0]]), np.array([1, 0])
    assert figures(np.array([[3.0], [np.nan]]), y, own) == (2, np.inf)
    errors, loss = figures(np.array([[3.0], [1.0]]), y, own)
    assert errors == 1
    assert loss == pytest.approx(np.log1p(np.exp(-6.0)) + np.log1p(np.exp(2.0)))


MIXED_SCALE = [
    [100.0, 0.0, 0.0],
    [1.0, 3.8, 9.2],
    [-7.0, 0.0, 0.0],
    [19.0, -0.1, -0.2],
    [-59.0, -0.1, 0.0],
    [0.9, 0.1, 24.5],
    [0.0, 0.0, 39.2],
    [-82.4, -5.9, 0.1],
]
"""eight documents on which the solution for a large C takes 86,000 steps, or with a wild kernel as many as it may"""


@pytest.mark.parametrize(
    ("options", "solved"),
    [({"kernel": "linear"}, 2), ({"kernel": "poly", "gamma": 1e5, "degree": 2, "tolerance": 1.0}, 0)],
    ids=["some", "none"],
)
def test_values_that_take_too_many_steps_are_left_out_and_named(
    options: dict[str, Any], solved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_tuning, "MOST_STEPS", 20_000)
    rows, labels = rows_of(np.array(MIXED_SCALE)), np.arange(8, dtype=np.int32) % 2
    training = train(TrainingTask(rows, labels, ["a", "b"], "kernel_svm", options))
    report = there(training.report)
    (tried,) = report["tried"]
    assert (len(tried["C"]), len(tried["right"])) == (3, solved)
    assert report["chosen"]["C"] in tried["C"][: max(1, solved)]
    assert ("held_out" in report, "no setting could be solved" in report["chosen"]["why"]) == (solved > 0, not solved)
    assert any(warning.startswith(f"{3 - solved} settings") for warning in training.warnings)


def test_options_say_what_is_left_to_the_data() -> None:
    assert KernelOptions.parse({}).is_tuned
    assert KernelOptions.parse({"C": 1.0}).is_tuned
    assert not KernelOptions.parse({"C": 1.0, "gamma": "scale"}).is_tuned
    assert not CccpOptions.parse({"C": 1.0, "kernel": "linear"}).is_tuned
    assert CtsvmOptions.parse({"kernel": "poly"}).is_tuned
