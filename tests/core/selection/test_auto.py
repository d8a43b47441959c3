"""Fractions, method and probabilities of generated documents with known truth."""

from typing import Any

import numpy as np
import pytest

from core.problem import Status
from core.selection import class_fractions
from tests.core.problems import rows_of
from tests.core.selection.pools import Pool, error, fit, pool, variation
from tests.core.watcher import Watcher
from tests.there import there


@pytest.mark.parametrize("fractions", [[0.85, 0.15], [0.5, 0.5], [0.2, 0.8]])
def test_fractions_that_the_labels_hide_are_found(fractions: list[float]) -> None:
    runs = [pool(seed, fractions) for seed in range(3)]
    found = np.mean([variation(fit(data, "tsvm"), data) for data in runs])
    hidden = abs(0.5 - fractions[0])
    assert found < max(0.06, 0.5 * hidden)


def hard_ones(seed: int) -> Pool:
    """Labels as a model would ask for them: the documents between the classes, as many of either, though one class is
    rare.
    """
    data = pool(seed, [0.88, 0.12], gap=3.0, n=600)
    between = np.abs((data.truth == 1) * 2.0 - 1 + np.random.default_rng(seed).normal(0, 0.3, 600))
    class_indices = data.class_indices.copy()
    for class_index, count in ((0, 20), (1, 30)):
        members = np.flatnonzero(data.truth == class_index)
        class_indices[members[np.argsort(between[members])[:count]]] = class_index
    return data._replace(class_indices=class_indices)


@pytest.mark.parametrize("algorithm", ["auto", "tsvm"])
def test_counts_of_chosen_labels_are_not_gone_by(algorithm: str) -> None:
    """Even where nobody says how they were drawn: the documents contradict that they are a random sample."""
    found: dict[str, list[float]] = {"unknown": [], "chosen": [], "random": []}
    for seed in range(3):
        data = hard_ones(seed)
        for drawn, variations in found.items():
            training = fit(data, algorithm, {"labels_drawn": drawn})
            assert there(training.report)["estimate"]["label_counts_used"] == (drawn == "random")
            variations.append(variation(training, data))
    assert np.mean(found["chosen"]) < 0.7 * np.mean(found["random"])
    assert found["unknown"] == pytest.approx(found["chosen"], abs=0.01)


def test_random_labels_are_gone_by_though_they_are_even() -> None:
    """As it happens where half of the documents are of either class; it narrows the posterior."""
    data = pool(0, [0.5, 0.5], per_class=40, gap=1.2)
    deviations = []
    for drawn in ("unknown", "random"):
        report = there(fit(data, "tsvm", {"labels_drawn": drawn}).report)
        assert report["estimate"]["label_counts_used"] == (drawn == "random")
        deviations.append(report["estimate"]["classes"]["c1"]["deviation"])
    assert deviations[1] < deviations[0]


def test_many_classes_have_fractions_too() -> None:
    data = pool(0, [0.6, 0.2, 0.15, 0.05], n=600, gap=3.0)
    training = fit(data)
    assert sum(there(training.report)["class_fractions"].values()) == pytest.approx(1)
    assert variation(training, data) < 0.15 < 0.3 < variation(fit(data, "tsvm", {"positive_fraction": "labeled"}), data)


def test_auto_does_well_where_the_default_of_others_loses() -> None:
    runs = [pool(seed, [0.85, 0.15], gap=3.0) for seed in range(4)]
    auto, labels, supervised = (
        np.mean([error(fit(data, algorithm, options), data) for data in runs])
        for algorithm, options in (("auto", {}), ("tsvm", {"positive_fraction": "labeled"}), ("svm", {}))
    )
    assert auto < labels - 0.2
    assert auto < supervised + 0.05


def misleading(seed: int) -> Pool:
    """Two clusters far apart along one feature, each with half of either class; another feature tells the classes
    apart.
    """
    rng = np.random.default_rng(seed)
    truth, cluster = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    features = rng.standard_normal((400, 4))
    features[:, 0] += 6.0 * cluster
    features[:, 1] += 3.0 * truth
    return Pool.of(rows_of(features), truth, 20)


def test_labels_left_out_protect_from_clusters_that_mislead() -> None:
    errors, supervised = [], []
    for seed in range(4):
        data = misleading(seed)
        errors.append(error(fit(data), data))
        supervised.append(error(fit(data, "svm"), data))
    assert max(errors) < 0.2
    assert np.mean(errors) < np.mean(supervised) + 0.02


@pytest.mark.parametrize("fraction", [0.02, 0.98])
def test_fractions_that_cannot_be_true_are_kept_all_the_same(fraction: float) -> None:
    data = pool(0, [0.5, 0.5], per_class=15, gap=3.0)
    training = fit(data, options={"positive_fraction": fraction})
    assert there(training.probabilities)[:, 1].mean() == pytest.approx(fraction, abs=1e-3)


@pytest.mark.parametrize("others", [0, 3])
def test_where_no_two_classes_have_labels_to_spare_it_says_so(others: int) -> None:
    data = pool(0, [0.6, 0.4])
    class_indices = data.class_indices.copy()
    for label, kept in ((0, 1 + others), (1, 1)):
        class_indices[np.flatnonzero(class_indices == label)[kept:]] = -1
    report = there(fit(data._replace(class_indices=class_indices)).report)
    left_out = others and others + 1
    assert report["held_out"]["labels"] == left_out
    assert report["chosen"]["why"].startswith(
        f"too few labels to compare methods: {left_out} can be left out, and not of two classes"
    )


@pytest.mark.parametrize(("n_labeled", "weight"), [(150, 1.0), (300, 1 / 3)])
def test_no_unlabeled_document_weighs_more_than_a_labeled_one(n_labeled: int, weight: float) -> None:
    report = there(fit(pool(0, [0.6, 0.4], n_labeled // 2)).report)
    assert report["tried"][1]["lambda_u"] == pytest.approx(weight)


def test_the_report_tells_what_was_tried_and_why() -> None:
    training = fit(pool(1, [0.7, 0.3]))
    report = there(training.report)
    assert set(report) == {
        "chosen",
        "tried",
        "held_out",
        "features",
        "class_fractions",
        "estimate",
        "fractions",
        "confidence",
        "summary",
    }
    assert [each["algorithm"] for each in report["tried"]] == [
        "svm",
        "tsvm",
        "label_spreading",
        "kernel_ridge",
        "naive_bayes",
    ]
    grounds, weights, held_out = report["estimate"]["classes"]["c1"], report["chosen"]["weights"], report["held_out"]
    assert grounds["mean"] == pytest.approx(
        report["class_fractions"]["c1"], abs=0.05
    )  # which is that of all candidates
    assert sum(weights.values()) == pytest.approx(1)
    assert max(weights, key=weights.get) == report["chosen"]["algorithm"]
    # what labels left out save says how much less the supervised SVM counts, which the transductive one repeats
    svm, tsvm = (1 - held_out[key]["log_likelihood"] for key in ("svm", "tsvm"))
    assert weights["svm"] / weights["tsvm"] == pytest.approx(
        tsvm**4 / svm**3 / (1 - held_out["log_likelihood_of_chance"])
    )
    assert 0 < grounds["deviation"] < 0.3
    assert held_out["labels"] == 12
    np.testing.assert_allclose(
        there(training.probabilities).mean(axis=0), list(report["class_fractions"].values()), atol=1e-3
    )
    assert training.model.calibration is not None


@pytest.mark.parametrize(
    ("options", "expected"), [({"positive_fraction": 0.25}, 0.25), ({"class_fractions": "labeled"}, 0.5)]
)
def test_fractions_that_are_told_stand(options: dict[str, Any], expected: float) -> None:
    for algorithm in ("auto", "tsvm"):
        report = there(fit(pool(2, [0.7, 0.3]), algorithm, options).report)
        assert report["class_fractions"]["c1"] == pytest.approx(expected)
        assert report.get("estimate") is None


def test_without_unlabeled_documents_it_is_the_supervised_model() -> None:
    data = pool(0, [0.5, 0.5], n=40)
    whole = Pool(data.rows, data.truth.astype(np.int32), data.truth)
    training = fit(whole)
    assert there(training.report)["chosen"]["algorithm"] == "svm"
    assert training.model.calibration is not None


def test_one_label_a_class_is_enough() -> None:
    training = fit(pool(0, [0.5, 0.5], per_class=1))
    assert training.status is Status.CONVERGED
    assert there(training.report)["held_out"]["labels"] == 0


def test_features_of_unlike_scales_are_learned_and_told_on_the_raw_ones() -> None:
    plain = pool(3, [0.6, 0.4], per_class=30, gap=3.0)
    scales = np.ones(12)
    scales[5] = 1e5
    dense = np.zeros((plain.rows.n_rows, 12))
    owners = np.repeat(np.arange(plain.rows.n_rows), np.diff(plain.rows.indptr))
    dense[owners, plain.rows.indices] = plain.rows.values
    data = Pool(rows_of(dense * scales), plain.class_indices, plain.truth)
    training = fit(data)
    assert there(training.report)["features"].endswith("each divided by its root mean square")
    assert error(training, data) < 0.15
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores, atol=1e-3)


@pytest.mark.usefixtures("every_report")
@pytest.mark.parametrize("algorithm", ["auto", "tsvm"])
def test_a_stop_at_any_time_ends_it_and_progress_only_grows(algorithm: str) -> None:
    data = pool(0, [0.6, 0.3, 0.1])
    for calls in (1, 3):
        stopped = Watcher(calls)
        assert fit(data, algorithm, observer=stopped).status is Status.CANCELLED
        assert len(stopped.points) == calls
    watcher = Watcher()
    assert fit(data, algorithm, observer=watcher).status is Status.CONVERGED
    assert len(watcher.points) > 3
    assert watcher.fractions == sorted(watcher.fractions)
    assert watcher.fractions[0] < 0.5 < watcher.fractions[-1] == 1


@pytest.mark.usefixtures("every_report")
def test_a_stop_when_the_method_is_chosen_leaves_the_best_so_far() -> None:
    data = pool(4, [0.7, 0.3], gap=3.0)  # the transductive SVM is chosen, which begins with the supervised solution
    training = fit(data, observer=lambda point: bool(point.fraction > 0.93))
    assert training.status is Status.CANCELLED
    assert training.report is not None
    assert training.probabilities is None
    assert error(training, data) < 0.2
    assert fit(data, observer=lambda point: bool(point.fraction > 0.5)).report is None


def test_the_same_seed_gives_the_same_model() -> None:
    data = pool(4, [0.8, 0.2])
    one, other = (fit(data, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.report == other.report


@pytest.mark.parametrize("given", [0.2, 0.5, 0.8, 0.9])
@pytest.mark.parametrize(("seed", "gap"), [(0, 2.2), (1, 0.7), (4, 0.3)])
def test_given_fractions_move_labels_and_probabilities_alike(seed: int, gap: float, given: float) -> None:
    """Whichever candidate is kept, the supervised SVM among them, which knows nothing of fractions."""
    training = fit(pool(seed, [0.5, 0.5], gap=gap), options={"positive_fraction": given})
    assert training.probabilities is not None
    assert training.probabilities[:, 1].mean() == pytest.approx(given, abs=1e-3)
    labels = training.model.labels_of(training.scores)
    np.testing.assert_array_equal(labels, training.probabilities.argmax(axis=1))
    assert abs(labels.mean() - given) < 0.2, (
        "the likeliest class is more often that of most than the mean probability says"
    )


@pytest.mark.parametrize("fractions", [[0.5, 0.5], [0.4, 0.3, 0.2, 0.1]])
def test_no_label_contradicts_its_probability(fractions: list[float]) -> None:
    training = fit(pool(3, fractions, gap=1.0))
    assert training.probabilities is not None
    labels = training.model.labels_of(training.scores)
    np.testing.assert_array_equal(
        training.probabilities[np.arange(len(labels)), labels], training.probabilities.max(axis=1)
    )


def test_with_one_label_a_class_no_fold_is_solved() -> None:
    """Nothing can be left out; the same without any fold would be solved again for each."""
    few, more = (fit(pool(4, [0.5, 0.5], per_class=count)) for count in (1, 2))
    assert few.passes < 0.6 * more.passes
    assert there(few.report)["held_out"]["folds"] == 0


@pytest.mark.parametrize("surplus", [0, 1])
def test_more_labels_of_one_class_do_not_mislead(surplus: int) -> None:
    """Of two classes, one of a tenth of the documents, ten labels each, and then twelve more of either: nothing gets
    much worse.
    """
    data = pool(2, [0.9, 0.1], per_class=10, gap=3.0)
    more = data.class_indices.copy()
    unlabeled = np.flatnonzero((data.truth == surplus) & (more < 0))
    more[unlabeled[:12]] = surplus
    even, uneven = fit(data), fit(data._replace(class_indices=more))
    assert error(uneven, data) < error(even, data) + 0.03
    if surplus == 1:
        assert not there(uneven.report)["estimate"]["label_counts_used"], (
            "two thirds of the labels are of a tenth of the documents"
        )


def test_counts_of_a_random_sample_are_used() -> None:
    data = pool(3, [0.9, 0.1], per_class=1, gap=3.0)
    class_indices = data.class_indices.copy()
    class_indices[:60] = data.truth[:60]
    report = there(fit(data._replace(class_indices=class_indices)).report)
    assert report["estimate"]["label_counts_used"]


@pytest.mark.parametrize(("counts", "used"), [((10, 10, 25, 10), False), ((7, 10, 25, 13), True)])
def test_equal_counts_of_all_classes_but_one_are_no_sample(counts: tuple[int, ...], used: bool) -> None:
    data = pool(0, [0.18, 0.18, 0.46, 0.18], per_class=0, gap=3.0)
    class_indices = data.class_indices.copy()
    for class_index, count in enumerate(counts):
        class_indices[np.flatnonzero(data.truth == class_index)[:count]] = class_index
    report = there(fit(data._replace(class_indices=class_indices), "tsvm").report)
    assert report["estimate"]["label_counts_used"] == used


def test_many_labels_find_fractions_between_those_that_are_tried() -> None:
    data = [pool(seed, [0.45, 0.55], per_class=100, gap=3.0, n=1200) for seed in range(4)]
    assert np.mean([variation(fit(each, "tsvm"), each) for each in data]) < 0.02


@pytest.mark.parametrize("algorithm", ["auto", "tsvm"])
@pytest.mark.parametrize("fractions", [[0.7, 0.3], [0.6, 0.3, 0.1]])
def test_fractions_of_some_classes_stand_and_the_others_are_estimated(algorithm: str, fractions: list[float]) -> None:
    bounded = {"c0": 0.5} if len(fractions) == 3 else {"c0": [0.45, 0.55]}
    training = fit(pool(1, fractions), algorithm, {"class_fractions": bounded})
    assert training.report is not None
    found = training.report["class_fractions"]
    assert found["c0"] == pytest.approx(0.5, abs=0.051)
    assert sum(found.values()) == pytest.approx(1)
    assert "c0" not in training.report["fractions"]["guessed"]
    if len(fractions) == 3:
        assert found["c0"] == pytest.approx(0.5, abs=1e-6)
        assert found["c1"] > found["c2"]


@pytest.mark.parametrize("favoured", [0, 2])
def test_more_true_labels_do_not_hurt(favoured: int) -> None:
    """Fifty more of one class, where the fractions are right, by the documents that have no label in either case."""
    gains = []
    for seed in range(3):
        few = pool(seed, [0.5, 0.3, 0.2], per_class=8, gap=2.0)
        more = few._replace(class_indices=few.class_indices.copy())
        more.class_indices[np.flatnonzero(few.truth == favoured)[8:58]] = favoured
        rest = more.class_indices < 0
        right = []
        for data in (few, more):
            true = np.bincount(data.truth[data.class_indices < 0]) / np.count_nonzero(data.class_indices < 0)
            training = fit(data, options={"class_fractions": dict(zip(("c0", "c1", "c2"), true.tolist(), strict=True))})
            labels = training.model.labels_of(training.scores, training.probabilities)
            unlabeled = rest[training.unlabeled]
            right.append(float((labels[unlabeled] == data.truth[rest]).mean()))
        gains.append(right[1] - right[0])
    assert np.mean(gains) > -0.02


def test_answers_that_labels_left_out_confirm_need_no_second_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says nothing agrees with none, and fractions would be even; the supervised SVM is right of nearly all
    labels left out. Where one class has no label left out, these confirm nothing.
    """
    data = pool(3, [0.7, 0.2, 0.1], per_class=10, gap=3.5)
    labels = np.random.default_rng(0).integers(0, 3, len(data.truth))
    monkeypatch.setattr(
        class_fractions, "_naive_bayes_labels", lambda *_: labels[: np.count_nonzero(data.class_indices < 0)]
    )
    assert variation(fit(data, "tsvm", {"labels_drawn": "chosen"}), data) < 0.2
    data.class_indices[np.flatnonzero(data.class_indices == 2)[1:]] = -1
    assert variation(fit(data, "tsvm", {"labels_drawn": "chosen"}), data) > 0.3


def test_a_guess_is_told_with_what_would_settle_it() -> None:
    data = pool(0, [0.4, 0.3, 0.3], per_class=3, gap=0.3)
    training = fit(data)
    guessed = there(training.report)["fractions"]["guessed"]
    assert guessed
    (warning,) = [each for each in training.warnings if "guess" in each]
    assert all(repr(each) in warning for each in guessed)
    assert "30 labels" in warning
    sampled = fit(pool(0, [0.4, 0.3, 0.3], per_class=10, gap=0.3), options={"labels_drawn": "random"})
    assert not there(sampled.report)["fractions"]["guessed"]
