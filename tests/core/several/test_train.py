"""Training of several labels: better than what a person would do by hand, honest about it, and the same everywhere."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.documents.drawn import Draw
from core.documents.label_sets import LabelSets
from core.documents.rows import FullRows, SparseRows, to_dense
from core.engine.passes import Engine
from core.errors import InvalidDocuments, InvalidOption
from core.evaluation.measures import LabelConfusion
from core.models.io import read_model
from core.problem import Status
from core.several.ridge import NAMES, RIDGE
from core.task import TrainingTask
from core.train import Training, TrainingContext, train
from tests.core.several.topics import LABELS, WORDS, Topics, sparse
from tests.core.watcher import Watcher
from tests.there import there
from workers.worker.training_inputs import ScratchFiles

TOPICS, FEW = Topics(600), Topics(300)
OWN_WORDS = (0, WORDS, 2 * WORDS)


def f1(truth: Any, given: Any) -> tuple[float, float]:
    counts = LabelConfusion(truth.shape[1])
    counts.add(truth, given)
    found = counts.agreement()
    return found.micro.f1, found.macro.f1


@pytest.mark.parametrize("algorithm", ["auto", "svm", "tsvm"])
def test_labels_are_found_with_their_frequencies_and_probabilities(algorithm: str) -> None:
    training = train(TOPICS.task(80, algorithm))
    assert (training.status, list(training.model.classes)) == (Status.CONVERGED, LABELS)
    assert np.array_equal(training.unlabeled, np.arange(80, 600))
    probabilities, truth = there(training.probabilities), TOPICS.truth[80:]
    micro, macro = f1(truth, training.model.given_labels(probabilities))
    assert micro > 0.85
    assert macro > 0.8
    figures = there(training.report)["labels"]
    for column, label in enumerate(LABELS):
        assert figures[label]["fraction"] == pytest.approx(truth[:, column].mean(), abs=0.06)
        assert probabilities[:, column].mean() == pytest.approx(figures[label]["fraction"], abs=0.02)
    assert truth[probabilities > 0.8].mean() > 0.8
    assert truth[probabilities < 0.1].mean() < 0.1


def test_it_is_heard_how_documents_were_drawn() -> None:
    found = np.full(600, Draw.FOUND, np.int8)
    options: list[dict[str, Any]] = [{}, {"labels_drawn": "random"}]
    by_documents, by_option = (train(TOPICS.task(80, drawn=found, options=each)) for each in options)
    chosen = train(TOPICS.task(80, options={"labels_drawn": "chosen"}))
    assert np.array_equal(there(chosen.probabilities), there(by_documents.probabilities))
    assert not np.allclose(there(by_documents.probabilities), there(by_option.probabilities))
    assert np.array_equal(there(by_option.probabilities), there(train(TOPICS.task(80)).probabilities))


def test_thresholds_give_more_than_scores_above_zero_do() -> None:
    few = Topics(600, seed=3)
    training = train(few.task(25))
    by_thresholds = f1(few.truth[25:], training.model.given_labels(there(training.probabilities)))
    assert np.greater(by_thresholds, f1(few.truth[25:], training.scores > 0)).all()


def test_held_out_scores_are_those_of_models_without_the_label() -> None:
    """With labels that have nothing to do with the documents, what is left out is no better than chance."""
    senseless = Topics(300, seed=1)
    senseless.truth = np.random.default_rng(5).random(senseless.truth.shape) < 0.3
    training = train(senseless.task(200))
    held_out = there(training.held_out)
    for column in range(len(LABELS)):
        applies = senseless.truth[:200, column]
        higher = (held_out[applies, column][:, None] > held_out[~applies, column]).mean()
        assert 0.35 < higher < 0.65
    assert there(training.report)["held_out"]["f1_micro"] < 0.6


def test_a_label_that_is_known_of_few_documents_is_learned_from_these() -> None:
    """``not`` and unknown labels: who is told of one label alone is unlabeled for the others."""
    partly = LabelSets.of(
        [[1] if row[1] else None for row in TOPICS.truth],
        [None if row[1] else [1] for row in TOPICS.truth],
        LABELS,
    )
    known = train(TOPICS.task(0, label_sets=partly))
    assert (known.model.classes, len(known.unlabeled)) == (["corn"], 0)
    given = known.model.given_labels(there(known.model.probabilities(known.model.scores(TOPICS.rows))))
    assert f1(TOPICS.truth[:, [1]], given)[0] > 0.9


@pytest.mark.parametrize("algorithm", ["auto", "svm"])
def test_what_does_not_apply_is_learned_from(algorithm: str) -> None:
    """All labels are known of 40 documents; of 260 others the first that does not apply."""
    applied = [np.flatnonzero(row).tolist() if place < 40 else None for place, row in enumerate(TOPICS.truth)]
    first = [np.flatnonzero(~row)[:1].tolist() for row in TOPICS.truth[40:300]]
    partly = LabelSets.of(applied, [*[None] * 40, *first, *[None] * 300], LABELS)
    alone, both = (train(TOPICS.task(40, algorithm, **each)) for each in ({}, {"label_sets": partly}))
    own, more = (
        f1(TOPICS.truth[300:], each.model.given_labels(there(each.probabilities)[-300:]))[0] for each in (alone, both)
    )
    assert more > own


def test_a_label_of_one_document_is_kept_and_told() -> None:
    rare = Topics(300, seed=2)
    rare.truth[:, 2] = np.arange(300) == 7
    training = train(rare.task(60))
    assert list(training.model.classes) == LABELS
    assert training.warnings[0].endswith("one document alone, so that nothing says how well it is found: 'ship'")
    assert there(training.report)["labels"]["ship"]["labeled"] == 1
    assert np.isnan(there(training.held_out)[7, 2])


def test_a_label_of_three_documents_is_not_dropped() -> None:
    rare = Topics(400, seed=4)
    rows = np.flatnonzero(rare.truth[:100, 2])
    rare.truth[rows[3:], 2] = False
    training = train(rare.task(100))
    given = training.model.given_labels(there(training.probabilities))[:, 2]
    assert given.sum() >= 1
    assert rare.truth[100:][given, 2].mean() > 0.5


def test_weight_zero_is_unlabeled_and_two_is_twice() -> None:
    unweighted = (np.arange(600) >= 40) & (np.arange(600) < 80)
    found = train(TOPICS.task(80, "svm", weights=np.where(unweighted, 0.0, 1.0)))
    assert np.array_equal(found.unlabeled, np.arange(40, 600))
    twice = np.where(np.arange(600) < 5, 2.0, 1.0)
    plain, weighed = (train(TOPICS.task(80, "svm", weights=each)) for each in (None, twice))
    assert not np.array_equal(plain.scores, weighed.scores)


def test_the_same_bits_with_any_threads_and_from_mapped_files(tmp_path: Any) -> None:
    task = TOPICS.task(60)
    contexts = [
        TrainingContext(threads=1),
        TrainingContext(threads=2),
        TrainingContext(engine=Engine("mapped", ScratchFiles(tmp_path))),
    ]
    first, *others = (train(task, context) for context in contexts)
    assert all(np.array_equal(first.scores, other.scores) for other in others)
    assert all(np.array_equal(there(first.probabilities), there(other.probabilities)) for other in others)


def test_a_model_is_read_as_it_was_written() -> None:
    model = train(TOPICS.task(60)).model
    again = read_model(*model.to_arrays())
    assert again.several
    likely, read = (there(each.probabilities(each.scores(TOPICS.rows))) for each in (model, again))
    assert np.array_equal(likely, read)
    assert again.label_sets(read) == model.label_sets(likely)


def test_progress_grows_to_one_and_a_stop_is_heard() -> None:
    watcher = Watcher()
    training = train(TOPICS.task(60, "tsvm"), TrainingContext(watcher))
    assert watcher.fractions == sorted(watcher.fractions)
    assert watcher.fractions[-1] == 1.0
    assert {point.phase.label for point in training.trace} == set(LABELS)
    # how many reports there are depends on time, so the first one stops it
    assert train(TOPICS.task(60, "tsvm"), TrainingContext(lambda _: True)).status is Status.CANCELLED


@pytest.mark.parametrize(
    ("algorithm", "options", "field", "words"),
    [
        ("kernel_svm", {}, "algorithm", "kernel_svm learns one label a document; of algorithms for several there are"),
        ("tsvm", {"positive_fraction": 0.2}, "positive_fraction", "is for documents of one label"),
        ("auto", {"class_fractions": {"corn": [0.1, 0.2]}}, "class_fractions", "is for documents of one label"),
    ],
)
def test_what_is_for_one_label_is_refused(algorithm: str, options: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidOption, match=words) as error:
        train(TOPICS.task(60, algorithm, options=options))
    assert error.value.field == field


def test_too_many_labels_and_no_labels_are_refused_with_words() -> None:
    with pytest.raises(InvalidDocuments, match="a model of 3 labels and 48 features would take 1,152 bytes"):
        train(TOPICS.task(60), TrainingContext(max_model_bytes=1000))
    none = LabelSets.of([[]] * 600, [None] * 600, LABELS)
    with pytest.raises(InvalidDocuments, match="no label applies to any document"):
        train(TOPICS.task(0, label_sets=none))


def test_fractions_of_the_labels_are_taken_where_the_options_say_so() -> None:
    counted, estimated = (
        train(TOPICS.task(40, "tsvm", options={"positive_fraction": each})) for each in ("labeled", "estimate")
    )
    assert not np.array_equal(counted.scores, estimated.scores)


def named(*words: int) -> SparseRows:
    """Names of labels that are a word each."""
    return sparse(np.eye(FEW.rows.n_features, dtype=np.float32)[list(words)])


def dense(rows: SparseRows) -> Any:
    return to_dense(rows, rows.indices).astype(np.float64)


def right(training: Training, truth: Any, first: int = 0) -> float:
    """The share of labels, of the documents from the ``first`` unlabeled one on, that are given rightly."""
    return float((training.model.given_labels(there(training.probabilities)) == truth)[first:].mean())


def test_scores_are_those_of_ridge_regression_over_terms_and_principal_directions() -> None:
    """The model is linear in the terms; with its emphasis known, NumPy finds the same."""
    training = train(FEW.task(60))
    emphasis = there(training.report)["emphasis"]
    matrix = dense(FEW.rows)
    principal = np.linalg.svd(matrix, full_matrices=False)[2][: matrix.shape[1] // 4]
    values = matrix @ matrix.T + emphasis * (matrix @ principal.T) @ (matrix @ principal.T).T
    kernel = values / values[:60, :60].diagonal().mean() + 1
    weights = np.linalg.solve(kernel[:60, :60] + RIDGE * np.eye(60), FEW.truth[:60].astype(float))
    expected = kernel[60:, :60] @ weights
    for found, own in zip(training.scores.T, expected.T, strict=True):
        assert np.corrcoef(found, own)[0, 1] > 0.98  # the directions are approximate


@pytest.mark.parametrize("partly", [False, True])
def test_held_out_scores_are_those_of_a_training_without_the_labels(partly: bool, monkeypatch: Any) -> None:
    """Of a document whose labels are known no more, in the same rows; of another barley may be known alone."""
    monkeypatch.setattr("core.several.ridge.EMPHASES", (0.0,))
    monkeypatch.setattr("core.several.ridge._Fit.likelihood", lambda fit, *_: fit.names)

    def trained(*unlabeled: int) -> Training:
        applied: list[Any] = [np.flatnonzero(row).tolist() for row in FEW.truth]
        known = [row < 50 and row not in unlabeled for row in range(300)]
        excluded = [[0] if partly and row == 4 and 0 not in own else None for row, own in enumerate(applied)]
        found = [own if known[row] and not excluded[row] else None for row, own in enumerate(applied)]
        sets = LabelSets.of(found, excluded, LABELS)
        return train(FEW.task(0, label_sets=sets, class_names=named(*OWN_WORDS)))

    training, without = trained(), trained(10)
    assert there(training.report)["method"] == "ridge"
    assert there(training.report)["names"] == there(without.report)["names"] == NAMES[-1]
    [own] = np.flatnonzero(without.unlabeled == 10)
    assert there(training.held_out)[10] == pytest.approx(without.scores[own], abs=1e-5)
    if partly:
        assert np.isnan(there(training.held_out)[4]).tolist() == [False, True, True]


def test_words_of_unlabeled_documents_lead_to_those_of_no_labeled_one(
    monkeypatch: Any, rng: np.random.Generator
) -> None:
    """Each label has two sets of words. Most documents with labels have words of one, others of both."""
    truth = rng.random((600, 3)) < 0.4
    counts = np.zeros((600, 198), np.float32)
    for row in range(600):
        side = rng.integers(2)
        for label in np.flatnonzero(truth[row]):
            first, second = rng.integers(30, size=2), 30 + rng.integers(30, size=2)
            words = np.concatenate([first, second]) if 60 <= row < 400 else [first, second][side]
            np.add.at(counts[row], 60 * label + words, 1)
        np.add.at(counts[row], 180 + rng.integers(18, size=3), 1)
    applied = [np.flatnonzero(own).tolist() if row < 60 else None for row, own in enumerate(truth)]
    sets = LabelSets.of(applied, [None] * 600, LABELS)
    task = TrainingTask(sparse(counts), np.full(600, -1), LABELS, "auto", {}, label_sets=sets)
    training = train(task)
    assert there(training.report)["emphasis"] > 0
    monkeypatch.setattr("core.several.ridge.EMPHASES", (0.0,))
    plain = train(task)
    assert right(training, truth[60:], 340) > right(plain, truth[60:], 340) + 0.03


@pytest.mark.usefixtures("every_report")
def test_a_model_is_ready_however_few_the_seconds(monkeypatch: Any) -> None:
    training = train(FEW.task(60, options={"seconds": 1e-9}))
    assert training.status is Status.CONVERGED
    report = there(training.report)
    assert report["emphasis"] == 0
    assert report["time"] == {"seconds": 1e-9, "all_methods_tried": False, "solved": True}
    assert "1e-09 seconds were over before all methods were tried" in training.warnings[-1]
    monkeypatch.setattr("core.several.ridge.MOST_LABELED", 59)
    training = train(FEW.task(60, options={"seconds": 1e-9}))
    report = there(training.report)
    assert report["method"] == "svm"
    assert not report["time"]["solved"]
    assert np.isfinite(training.scores).all()
    assert "time" not in there(train(FEW.task(60)).report)


def test_dense_documents_have_svms() -> None:
    matrix = dense(FEW.rows).astype(np.float32)
    full = FullRows.of(matrix)
    stored = SparseRows(full.indptr, np.tile(np.arange(48, dtype=np.uint32), 300), matrix.ravel(), 48)
    assert there(train(replace(FEW.task(60), rows=stored)).report)["method"] == "svm"


def test_names_of_labels_are_evidence_and_misleading_ones_count_for_nothing() -> None:
    none = train(FEW.task(40))
    own, misleading = (
        train(FEW.task(40, class_names=named(*words))) for words in (OWN_WORDS, range(3 * WORDS, 3 * WORDS + 3))
    )
    assert right(own, FEW.truth[40:]) > right(none, FEW.truth[40:])
    assert there(misleading.report)["names"] == 0
    assert misleading.scores.tolist() == none.scores.tolist()


def test_one_document_of_each_label_tells_that_names_help() -> None:
    of_one_label = FEW.truth.sum(axis=1) == 1
    named_rows = (dense(FEW.rows)[:, OWN_WORDS] > 0) & FEW.truth & of_one_label[:, None]
    labeled = {*named_rows.argmax(axis=0).tolist(), *np.flatnonzero(~FEW.truth.any(axis=1))[:20].tolist()}
    applied = [np.flatnonzero(own).tolist() if row in labeled else None for row, own in enumerate(FEW.truth)]
    task = FEW.task(0, label_sets=LabelSets.of(applied, [None] * 300, LABELS), class_names=named(*OWN_WORDS))
    assert there(train(task).report)["names"] > 0
