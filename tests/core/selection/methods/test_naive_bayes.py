"""Naive Bayes: against plain NumPy, on generated texts with known truth, and as a model."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core import train as train_module
from core.engine.runner import Scheduler
from core.models.model import LinearModel
from core.options.base import TrainingSize
from core.problem import Linear, Status, unlabeled_scores
from core.progress import WHOLE, Phase, TracePoint
from core.selection import data as data_module
from core.selection.auto import Selection, auto
from core.selection.candidates import Selecting
from core.selection.class_fractions import combine_evidence
from core.selection.data import SelectionData
from core.selection.methods.naive_bayes import NaiveBayes, _column, _log_odds
from core.selection.naive_bayes_em import Moments, NaiveBayesEM
from core.selection.posterior import grid_around
from core.selection.registry import METHODS
from core.validation.calibration import SLOPE
from core.validation.folds import N_FOLDS
from tests.calls import noted
from tests.core.problems import dense_of, rows_of
from tests.core.selection.pools import Pool, clusters, error, fit, selection_data_of, trained, variation, words
from tests.core.watcher import Watcher
from tests.there import there

Matrix = NDArray[np.float64]
GRID = [0.1, 0.3, 0.5, 0.7, 0.9]


def learned(selection_data: SelectionData, fold: int, weight: float = 1.0) -> tuple[NaiveBayesEM, list[TracePoint]]:
    run = NaiveBayesEM(selection_data, Moments(selection_data, lambda: None), fold, weight)
    with Scheduler(selection_data.scaled.rows, threads=1) as scheduler:
        result = scheduler.run({Phase(): run.steps})[0]
    assert result.status is Status.CONVERGED
    return run, list(result.trace)


def naive_bayes_of(selection_data: SelectionData) -> NaiveBayes:
    with Scheduler(selection_data.scaled.rows, threads=1) as scheduler:
        return NaiveBayes.of(scheduler, selection_data, WHOLE, lambda: None)


def fractions_of(selection_data: SelectionData, naive_bayes: NaiveBayes) -> NDArray[np.float64]:
    """The class fractions of two classes by naive Bayes alone."""
    own = naive_bayes.of_two, naive_bayes.predicted
    return combine_evidence(selection_data, *own, grid_around(0.5)).fractions


def expectation_maximisation(
    dense: Matrix, seeds: Matrix, n_labeled: int, rounds: int
) -> tuple[Matrix, NDArray[np.float64], Matrix]:
    """Log-probabilities of the terms in each class, priors, and logits of all rows, as the paper has them, slowly.

    The logits of unlabeled rows are by the counts of all others.
    """
    weights, priors, n_classes = seeds.copy(), np.full(seeds.shape[1], 1 / seeds.shape[1]), seeds.shape[1]
    terms, logits = np.zeros((n_classes, dense.shape[1])), np.zeros(seeds.shape)
    for _ in range(rounds):
        for place in range(n_classes):
            counts = 10 * dense.mean(axis=0)
            for row, weight in zip(dense, weights[:, place], strict=True):
                counts = counts + weight * row
            counts = np.maximum(counts, 1e-300)  # of a term that no document has
            terms[place] = np.log(counts / counts.sum())
            logits[:n_labeled, place] = dense[:n_labeled] @ terms[place]
            for row in range(n_labeled, len(dense)):
                others = np.maximum(counts - weights[row, place] * dense[row], 1e-300)
                logits[row, place] = dense[row] @ np.log(others / others.sum())
        joint = dense[n_labeled:] @ terms.T + np.log(priors)
        responsibilities = np.exp(joint - joint.max(axis=1, keepdims=True))
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
        weights[n_labeled:] = responsibilities
        priors = (responsibilities.sum(axis=0) + 1) / (len(responsibilities) + n_classes)
    return terms, priors, logits


@pytest.mark.parametrize("fold", [0, N_FOLDS])
def test_it_is_expectation_maximisation(fold: int) -> None:
    selection_data = selection_data_of(words(0, [0.5, 0.3, 0.2], n=120))
    run, trace = learned(selection_data, fold)
    seeds = np.zeros((120, 3))
    labeled = np.flatnonzero(selection_data.folds != fold)
    seeds[labeled, selection_data.class_indices[labeled]] = 1.0
    dense = dense_of(selection_data.scaled.rows)
    others = 1 - 1 / np.maximum(1, (dense > 0).sum(axis=0))
    assert {0, 1 - 1 / 2, 1 - 1 / 3} <= set(others.tolist())
    worths = others / np.sqrt(((dense * others) ** 2).sum(axis=1).mean())
    terms, priors, logits = expectation_maximisation(
        dense * worths, seeds, len(selection_data.class_indices), len(trace)
    )
    np.testing.assert_allclose(run.coefficients[:, :-1], worths * terms, atol=1e-6)
    np.testing.assert_allclose(run.priors, priors, atol=1e-6)
    np.testing.assert_allclose(run.logits.T, logits, atol=1e-5)


def normal_expectation_maximisation(
    dense: Matrix, seeds: Matrix, n_labeled: int, rounds: int, weight: float
) -> tuple[Matrix, Matrix, NDArray[np.float64]]:
    """Means of the classes less the mean of all rows, over the variances, log-densities of all rows, and priors: ten
    rows with the moments of all are added to each class.
    """
    counted, priors, n_classes = seeds.copy(), np.full(seeds.shape[1], 1 / seeds.shape[1]), seeds.shape[1]
    for _ in range(rounds):
        masses = counted.sum(axis=0) + 10
        means = (counted.T @ dense + 10 * dense.mean(axis=0)) / masses[:, None]
        deviations = np.array([counted[:, place] @ (dense - mean) ** 2 for place, mean in enumerate(means)])
        added = np.array([10 * (dense.var(axis=0) + (dense.mean(axis=0) - mean) ** 2) for mean in means])
        variances = (deviations + added).sum(axis=0) / masses.sum()
        logs = np.array([-0.5 * ((dense - mean) ** 2 / variances).sum(axis=1) for mean in means]).T
        joint = logs[n_labeled:] + np.log(priors)
        responsibilities = np.exp(joint - joint.max(axis=1, keepdims=True))
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
        counted[n_labeled:] = weight * responsibilities
        priors = (responsibilities.sum(axis=0) + 1) / (len(responsibilities) + n_classes)
    return (means - dense.mean(axis=0)) / variances, logs, priors


@pytest.mark.parametrize("fold", [0, N_FOLDS])
@pytest.mark.parametrize("weight", [1.0, 0.1, 0.0])
def test_numbers_are_normal_in_each_class(fold: int, weight: float) -> None:
    selection_data = selection_data_of(clusters(0, [0.5, 0.3, 0.2]))
    run, trace = learned(selection_data, fold, weight)
    assert (len(trace) == 1) == (weight == 0)
    dense, n_labeled = dense_of(selection_data.scaled.rows), len(selection_data.class_indices)
    varying = dense.std(axis=0) > 0
    assert varying.sum() == 9
    seeds = np.zeros((len(dense), 3))
    labeled = np.flatnonzero(selection_data.folds != fold)
    seeds[labeled, selection_data.class_indices[labeled]] = 1.0
    coefficients, logs, priors = normal_expectation_maximisation(
        dense[:, varying], seeds, n_labeled, len(trace), weight
    )
    np.testing.assert_allclose(run.coefficients[:, :-1][:, varying], coefficients, atol=1e-5)
    assert not run.coefficients[:, :-1][:, ~varying].any()
    np.testing.assert_allclose(run.priors, priors, atol=1e-5)
    np.testing.assert_allclose(run.logits.T - run.logits.T[:, :1], logs - logs[:, :1], atol=1e-4)


def test_unlabeled_numbers_count_where_they_form_the_classes_and_not_where_they_form_others() -> None:
    data = clusters(4, [0.5, 0.5], distance=2.5, n=600)
    assert naive_bayes_of(selection_data_of(data)).weight == 1.0
    # four clusters, of which each class has two that lie opposite each other
    rng = np.random.default_rng(5)
    truth, side = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    X = 0.5 * rng.standard_normal((600, 4))
    X[:, 0] += 3.0 * side
    X[:, 1] += 1.2 * truth
    assert naive_bayes_of(selection_data_of(Pool.of(rows_of(X), truth, 20))).weight < 1.0


def test_unlabeled_numbers_count_where_no_label_can_be_left_out() -> None:
    assert naive_bayes_of(selection_data_of(clusters(4, [0.5, 0.5], per_class=1))).weight == 1.0


def test_small_differences_of_large_numbers_are_not_rounded_away() -> None:
    """Rows that leave zeros out are not centred."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 2, 2000)
    X = np.where(rng.random((2000, 5)) < 0.5, rng.standard_normal((2000, 5)), 0.0)
    X[:, 0] = 1.0 + 2e-6 * (2 * truth - 1)
    known = np.where(np.arange(2000) < 20, truth, -1).astype(np.int32)
    selection_data = selection_data_of(Pool(rows_of(X), known, truth))
    assert selection_data.dense
    assert not selection_data.scaled.centre.any()
    run, trace = learned(selection_data, N_FOLDS)
    seeds = np.zeros((2000, 2))
    seeds[np.arange(20), selection_data.class_indices] = 1.0
    coefficients, _, _ = normal_expectation_maximisation(
        dense_of(selection_data.scaled.rows), seeds, 20, len(trace), 1.0
    )
    np.testing.assert_allclose(run.coefficients[:, 0], coefficients[:, 0], rtol=0.05)
    np.testing.assert_allclose(run.coefficients[:, 1:-1], coefficients[:, 1:], atol=0.05)


def test_what_rows_are_is_decided_by_all_of_their_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rare features a larger share of the values is not zero."""
    monkeypatch.setattr(data_module, "MANY_ROWS", 10)
    monkeypatch.setattr(data_module, "_SHARE", 0.02)
    rng = np.random.default_rng(9)
    X = np.concatenate([rng.random((300, 10)) * (rng.random((300, 10)) < 0.5), np.eye(300, 600)], axis=1)
    truth = (X[:, 0] > X[:, 1]).astype(np.intp)
    known = np.where(np.arange(300) < 20, truth, -1).astype(np.int32)
    whole = selection_data_of(Pool(rows_of(X), known, truth))
    frequent = data_module.with_frequent_features(whole, lambda: None)
    assert frequent.scaled.rows.n_features < whole.scaled.rows.n_features
    assert frequent.scaled.rows.n_nonzeros > 0.1 * 300 * frequent.scaled.rows.n_features
    assert not whole.dense
    assert not frequent.dense


def test_auto_takes_normal_classes() -> None:
    data = clusters(7, [0.5, 0.5], distance=2.5, n=600, per_class=10)
    training = fit(data)
    assert training.report is not None
    tried = {each["algorithm"]: each for each in training.report["tried"]}
    assert tried["naive_bayes"]["unlabeled_weights"] == [1.0, pytest.approx(40 / 580), 0.0]
    assert tried["naive_bayes"]["best_unlabeled_weight"] in tried["naive_bayes"]["unlabeled_weights"]
    assert training.report["chosen"]["weights"]["naive_bayes"] > 0.2
    assert error(training, data) < 0.14  # the least possible is .106
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores, atol=1e-3)


@pytest.mark.parametrize(
    ("made", "weight"),
    [
        (partial(words, 1, [0.7, 0.3], length=5), 1.0),
        (partial(clusters, 1, [0.7, 0.3], distance=2.0), 1.0),
        (partial(clusters, 1, [0.7, 0.3], distance=2.0), 0.05),
    ],
)
def test_the_objective_falls_in_every_round(made: Callable[[], Pool], weight: float) -> None:
    trace = learned(selection_data_of(made()), N_FOLDS, weight)[1]
    assert len(trace) > 3
    assert (np.diff([point.objective for point in trace]) <= 1e-12).all()


@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
def test_even_labels_do_not_hide_how_large_the_classes_of_short_texts_are(share: float) -> None:
    for seed in (2, 3):
        data = words(seed, [1 - share, share], n=800, per_class=12)
        selection_data = selection_data_of(data)
        naive_bayes, truth = naive_bayes_of(selection_data), data.truth[data.class_indices < 0]
        fractions = fractions_of(selection_data, naive_bayes)
        assert abs(fractions[1] - truth.mean()) < 0.08
        unlabeled = dense_of(selection_data.scaled.rows)[len(selection_data.class_indices) :]
        linear = unlabeled @ naive_bayes.em.coefficients[:, :-1].T
        logits = linear + naive_bayes.intercepts(fractions)
        assert np.mean(logits.argmax(axis=1) != truth) < 0.06


def test_clusters_that_are_not_the_classes_do_not_decide_how_frequent_these_are() -> None:
    """The classes are even, with few words of their own; a subject of a seventh of the texts has many."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth, kind = rng.integers(0, 2, 600), rng.random((600, 30))
        subject = rng.random(600) < np.where(truth == 1, 0.21, 0.09)
        drawn = np.where(kind < 0.5, rng.integers(0, 150, (600, 30)) + 150 * subject[:, None], kind * 600)
        drawn = np.where(kind > 0.88, rng.integers(0, 50, (600, 30)) + 300 + 50 * truth[:, None], drawn)
        counts = np.zeros((600, 600))
        np.add.at(counts, (np.repeat(np.arange(600), 30), drawn.astype(np.int64).ravel()), 1.0)
        selection_data = selection_data_of(Pool.of(rows_of(counts), truth, 20))
        fitted = naive_bayes_of(selection_data)
        assert abs(fitted.em.priors[-1] - 0.5) > 0.25
        found.append(abs(fractions_of(selection_data, fitted)[-1] - 0.5))
    assert np.mean(found) < 0.15


@pytest.mark.parametrize("n_asked", [1, 3])
def test_a_class_with_few_labels_of_twenty_is_not_given_most_of_the_documents(n_asked: int) -> None:
    """One of four subjects is asked for. What nothing is known of would be given to the class with the fewest labels,
    and the subjects of the rest are clusters of their own.
    """
    found = []
    for seed in range(4):
        data = words(seed, [0.3, 0.3, 0.3, 0.1], n=800)
        truth = (data.truth == 3).astype(np.int64)
        rest, asked = np.flatnonzero(truth == 0), np.flatnonzero(truth == 1)
        class_indices = np.full(800, -1, np.int32)
        class_indices[rest[: 20 - n_asked]], class_indices[asked[:n_asked]] = 0, 1
        selection_data = selection_data_of(Pool(data.rows, class_indices, truth))
        found.append(fractions_of(selection_data, naive_bayes_of(selection_data))[1])
    assert np.mean(found) < 0.4


def test_the_fractions_of_even_classes_of_short_texts_are_found() -> None:
    texts = (words(seed, [0.5, 0.5], n=800, per_class=12) for seed in range(8))
    assert np.mean([variation(fit(each), each) for each in texts]) < 0.05


def test_auto_takes_it_where_labels_left_out_are_likelier_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data, others = words(2, [0.5, 0.5], n=800, per_class=12), words(3, [0.5, 0.5], n=800)
    selections: list[Selection] = []

    def selecting(task: Selecting) -> Selection:
        selections.append(auto(task))
        return selections[-1]

    monkeypatch.setattr(train_module, "auto", selecting)
    training = fit(data)
    assert training.report is not None
    assert training.report["chosen"]["algorithm"] == "naive_bayes"
    assert training.report["chosen"]["weights"]["naive_bayes"] > 0.5
    assert [each["algorithm"] for each in training.report["tried"]] == ["svm", "tsvm", "naive_bayes"]
    assert training.status is Status.CONVERGED
    assert error(training, data) < 0.04
    assert isinstance(training.model, LinearModel)
    assert np.mean(training.model.labels_of(training.model.scores(others.rows)) != others.truth) < 0.06
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores, atol=1e-5)
    (selection,), fractions = selections, list(training.report["class_fractions"].values())
    as_new = selection.calibrate().probabilities(unlabeled_scores(selection.results))
    np.testing.assert_allclose(as_new.mean(axis=0), fractions, atol=1e-3)
    np.testing.assert_allclose(there(training.probabilities).mean(axis=0), fractions, atol=0.02)
    assert [str(point.phase) for point in training.trace if point.phase.purpose != "addend"] == ["naive_bayes"]


def test_the_pool_is_scored_by_the_model_where_scores_are_of_new_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """In slices, between which a stop is heard; else its scores are those of the solvers."""
    heights = noted(monkeypatch, LinearModel, "scores", lambda _, rows: rows.n_rows)
    monkeypatch.setattr("core.models.assembly._SLICE", 2_000)
    terms = words(7, [0.5, 0.3, 0.2], n=600)
    assert there(fit(terms).report)["chosen"]["weights"]["naive_bayes"] > 0
    assert sum(heights) == 600
    assert max(heights) < 100
    heights.clear()
    assert isinstance(trained().model, LinearModel)
    assert not heights


def test_terms_of_one_document_alone_do_not_bind_it_to_its_class() -> None:
    """As names and numbers in texts: they say nothing of other documents, and of new ones there are none."""
    wrong = []
    for seed in (4, 5, 6):
        data, others = words(seed, [0.5, 0.3, 0.2], n=600), words(seed + 10, [0.5, 0.3, 0.2], n=600)
        pool, n = dense_of(data.rows), len(data.truth)
        own = np.kron(np.eye(n), np.full((1, 8), 0.3))
        training = fit(data._replace(rows=rows_of(np.hstack([pool, own]))))
        new = rows_of(np.hstack([dense_of(others.rows), np.zeros_like(own)]))
        wrong.append(
            [error(training, data), np.mean(training.model.labels_of(training.model.scores(new)) != others.truth)]
        )
    assert (np.mean(wrong, axis=0) < 0.11).all()


def test_many_classes_are_weighed_against_each_other() -> None:
    data = words(3, [0.5, 0.25, 0.15, 0.1], n=800, per_class=12)
    training = fit(data)
    assert there(training.report)["chosen"]["algorithm"] == "naive_bayes"
    assert variation(training, data) < 0.12
    fractions = {f"c{class_index}": share for class_index, share in enumerate([0.5, 0.25, 0.15, 0.1])}
    assert error(training, data) < error(fit(data, "tsvm", {"class_fractions": fractions}), data)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("spread", [1.0, 30.0, 3000.0])
def test_odds_against_all_others_hold_however_sure_the_joint_densities_are(n_classes: int, spread: float) -> None:
    joint = spread * np.random.default_rng(n_classes).standard_normal((n_classes, 50)) - 1e4
    joint[:, 0], joint[:2, 1] = -7.0, joint[:, 1].max()  # all classes alike; two of them the largest
    positives = [1] if n_classes == 2 else list(range(n_classes))
    asked: list[None] = []
    found = _log_odds(joint, positives, lambda: asked.append(None))
    for column, positive in enumerate(positives):
        others = np.delete(joint, positive, axis=0)
        np.testing.assert_allclose(
            found[:, column], joint[positive] - np.logaddexp.reduce(others, axis=0), rtol=1e-12, atol=1e-11
        )
        np.testing.assert_allclose(
            _column(joint, joint.sum(axis=0), positive), joint[positive] - others.mean(axis=0), rtol=1e-12, atol=1e-10
        )
    assert n_classes == 2 or len(asked) >= n_classes, "a stop is heard between classes"


def test_columns_order_the_classes_as_the_mixture_does() -> None:
    selection_data = selection_data_of(words(5, [0.5, 0.3, 0.2]))
    naive_bayes, fractions = naive_bayes_of(selection_data), np.array([0.2, 0.3, 0.5])
    intercepts = naive_bayes.intercepts(fractions)
    with Scheduler(selection_data.scaled.rows, threads=1) as scheduler:
        results = scheduler.run({Phase(label=each): partial(naive_bayes.steps, each, intercepts) for each in range(3)})
    scores = np.column_stack([result.unlabeled_scores for result in results])
    logits = naive_bayes.em.logits[:, len(selection_data.class_indices) :].T + intercepts
    np.testing.assert_array_equal(scores.argmax(axis=1), logits.argmax(axis=1))
    # a model has the terms of every document among its own; scores are those of a document without them
    unlabeled = dense_of(selection_data.scaled.rows)[len(selection_data.class_indices) :]
    decisions = [each.decision for each in results]
    linear = [unlabeled @ each.coefficients + each.intercept for each in decisions if isinstance(each, Linear)]
    of_classes = unlabeled @ naive_bayes.em.coefficients[:, :-1].T + intercepts
    for each, found in enumerate(linear):
        expected = _column(of_classes.T, of_classes.sum(axis=1), each) / naive_bayes.size
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert sum(result.objective for result in results) == pytest.approx(naive_bayes.em.objective)
    responsibilities = np.exp(SLOPE / naive_bayes.size * (logits - logits.max(axis=1, keepdims=True)))
    np.testing.assert_allclose(
        (responsibilities / responsibilities.sum(axis=1, keepdims=True)).mean(axis=0), fractions, atol=1e-4
    )


def test_labels_left_out_are_scored_by_runs_that_did_not_know_them() -> None:
    """A label that is wrong pulls its own document, unless the run was not given it."""
    data = words(6, [0.5, 0.5], n=60, per_class=9)
    selection_data = selection_data_of(data)
    naive_bayes = naive_bayes_of(selection_data)
    for fold in range(N_FOLDS):
        run = learned(selection_data, fold)[0]
        hidden = np.flatnonzero(selection_data.folds == fold)
        odds = run.logits[1] - run.logits[0] + np.log(run.priors[1] / run.priors[0])
        np.testing.assert_allclose(naive_bayes.margins[hidden, 0] * naive_bayes.size, odds[hidden], rtol=1e-9)
        np.testing.assert_allclose(naive_bayes.columns[hidden, 0], naive_bayes.margins[hidden, 0], rtol=1e-9)


def test_scores_with_all_features_are_on_the_scale_of_those_with_the_frequent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The labels left out, by which the model is weighed and calibrated, are scored with frequent features alone."""
    monkeypatch.setattr(data_module, "MANY_ROWS", 10)
    monkeypatch.setattr(data_module, "_SHARE", 0.02)
    whole = selection_data_of(words(3, [0.5, 0.5], n=600, per_class=20))
    frequent = data_module.with_frequent_features(whole, lambda: None)
    assert frequent.scaled.rows.n_features < 0.7 * whole.scaled.rows.n_features
    few = naive_bayes_of(frequent)
    with Scheduler(whole.scaled.rows, threads=1) as scheduler:
        fitted = few.fitted_to(scheduler, whole, WHOLE)
    for each in (few, fitted):
        odds = each.em.logits[1] - each.em.logits[0] + np.log(each.em.priors[1] / each.em.priors[0])
        assert np.abs(odds[each.em.n_labeled :]).mean() == pytest.approx(each.size)
    assert fitted.size != pytest.approx(few.size, rel=0.02)


def test_values_below_zero_are_no_draws_of_terms() -> None:
    report = there(fit(words(2, [0.5, 0.5], sign=-1.0)).report)
    assert [each["algorithm"] for each in report["tried"]] == ["svm", "tsvm"]


def test_fractions_that_are_given_stand() -> None:
    training = fit(words(2, [0.9, 0.1], n=800), options={"positive_fraction": 0.3})
    assert training.report is not None
    assert training.report["class_fractions"]["c1"] == 0.3
    assert training.report["estimate"] is None


@pytest.mark.usefixtures("every_report")
@pytest.mark.parametrize("share", [0.76, 0.82, 0.85])
def test_a_stop_ends_it(share: float) -> None:
    watcher = Watcher(over=lambda point: point.fraction >= share)
    training: Any = fit(words(2, [0.5, 0.5]), observer=watcher)
    assert training.status is Status.CANCELLED
    assert watcher.fractions == sorted(watcher.fractions)


def test_documents_without_terms_and_terms_without_documents_do_no_harm() -> None:
    data = words(7, [0.6, 0.4], n=200)
    values = data.rows.values.copy()
    values[data.rows.indptr[150] :] = 0.0
    training = fit(data._replace(rows=data.rows._replace(values=values)))
    assert np.isfinite(training.scores).all()
    assert np.isfinite(there(training.probabilities)).all()


@pytest.mark.parametrize(
    ("size", "offered"),
    [((1000, 5000, 2), True), ((1000, 50, 2), True), ((1_000_000, 200_000, 20), False)],
)
def test_documents_that_fit_into_memory_are_taken_for_mixtures(size: tuple[int, int, int], offered: bool) -> None:
    n_documents, n_features, n_classes = size
    method, given = METHODS["naive_bayes"], TrainingSize(n_documents, 10, 0, n_features, n_classes)
    assert method.applies(given) == offered
    assert method.memory(given._replace(n_classes=2 * n_classes)) == 2 * method.memory(given)
