"""Training of several labels: better than what a person would do by hand, honest about it, and the same everywhere."""

from typing import Any

import numpy as np
import pytest

from core.documents.drawn import Draw
from core.documents.label_sets import LabelSets
from core.engine.passes import Engine
from core.errors import InvalidDocuments, InvalidOption
from core.evaluation.measures import LabelConfusion
from core.models.io import read_model
from core.problem import Status
from core.train import TrainingContext, train
from tests.core.several.topics import LABELS, Topics
from tests.core.watcher import Watcher
from tests.there import there
from workers.worker.scratch import ScratchFiles

TOPICS = Topics(600)


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
    sure = probabilities > 0.8
    assert truth[sure].mean() > 0.8
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
