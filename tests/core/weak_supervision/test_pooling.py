"""Trainings on documents with votes, of generated documents with known truth."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.errors import InvalidDocuments
from core.numerics.elementary import log
from core.problem import Status
from core.progress import Stopped
from core.train import Training, TrainingContext, TrainingTask, train
from core.weak_supervision import opinion_pool
from tests.core.selection.pools import Pool, pool, words
from tests.core.watcher import Watcher
from tests.core.weak_supervision.voting import Answers, people, rules, votes_of
from tests.there import there


def known(data: Pool, certain: Iterable[int]) -> NDArray[np.int64]:
    """The classes of these documents, -1 of all others."""
    labels = np.full(len(data.truth), -1)
    labels[list(certain)] = data.truth[list(certain)]
    return labels


def learned(
    data: Pool,
    answers: Answers,
    certain: Iterable[int] = (),
    algorithm: str = "auto",
    options: dict[str, Any] | None = None,
    **context: Any,
) -> Training:
    votes = votes_of(answers, int(data.truth.max()) + 1)
    task = TrainingTask(data.rows, known(data, certain), list(votes.classes), algorithm, options or {}, votes=votes)
    return train(task, TrainingContext(threads=1, **context))


def wrong(training: Training, data: Pool) -> float:
    """The share of all documents that the model alone errs on."""
    names = np.array(training.model.classes)[training.model.labels_of(training.model.scores(data.rows))]
    return float(np.mean(names != np.array([f"c{each}" for each in data.truth])))


def by_majority(data: Pool, answers: Answers) -> Training:
    """A training on the majority of the votes, of equals the first."""
    counts = np.stack([(answers == each).sum(axis=1) for each in range(int(data.truth.max()) + 1)], axis=1)
    labels = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    task = TrainingTask(data.rows, labels, [f"c{each}" for each in range(counts.shape[1])], "auto", {})
    return train(task, TrainingContext(threads=1))


@pytest.mark.parametrize(
    ("right", "coverage"), [([0.9, 0.7, 0.6, 0.6], 0.7), ([0.75, 0.75, 0.15], 1.0)], ids=["people", "an adversary"]
)
def test_people_are_weighed_by_how_right_they_are(right: list[float], coverage: float) -> None:
    """No label is certain: documents that look alike say who is right."""
    found = []
    for seed in range(3):
        data = pool(seed, [0.6, 0.4], gap=1.8)
        answers = people(data.truth, right, seed, coverage=coverage)
        training = learned(data, answers)
        found.append(wrong(training, data) - wrong(by_majority(data, answers), data))
        assert [each["right"] for each in there(training.report)["voters"].values()] == pytest.approx(right, abs=0.2)
    assert np.mean(found) < -0.01


def test_certain_labels_show_which_rules_are_wrong() -> None:
    """Of six rules that vote for one class each, two are mostly wrong."""
    found = []
    for seed in range(2):
        data = pool(seed, [0.7, 0.3], gap=1.8)
        answers = rules(data.truth, [0.9, 0.8, 0.9, 0.3, 0.8, 0.35], 0.12, seed)
        certain = np.random.default_rng(seed).permutation(400)[:40]
        task = TrainingTask(data.rows, known(data, certain), ["c0", "c1"], "auto", {})
        trained = learned(data, answers, certain), train(task, TrainingContext(threads=1)), by_majority(data, answers)
        found.append([wrong(each, data) for each in trained])
    own, alone, majority = np.mean(found, axis=0)
    assert own < min(alone + 0.01, majority - 0.01)
    assert [there(each.confidence).by_votes for each in trained] == [False] * 3


def test_votes_that_say_nothing_do_no_harm() -> None:
    data = pool(0, [0.6, 0.4], gap=2.2)
    answers = people(data.truth, [0.5, 0.5, 0.5], 0)
    certain = np.arange(80)
    alone = train(TrainingTask(data.rows, known(data, certain), ["c0", "c1"], "auto", {}), TrainingContext(threads=1))
    for options in ({}, {"seconds": 600.0}):
        assert wrong(learned(data, answers, certain, options=options), data) <= wrong(alone, data) + 0.02


def test_documents_without_a_certain_label_are_answered() -> None:
    """Those with votes by these and by the classifier together; in the order of the documents."""
    data = pool(1, [0.5, 0.3, 0.2], gap=2.0)
    answers = people(data.truth, [0.85, 0.85, 0.85], 1, n_classes=3)
    answers[200:] = -1
    training = learned(data, answers, np.array([3, 5, 250, 251]))
    others = np.delete(np.arange(400), [3, 5, 250, 251])
    np.testing.assert_array_equal(training.unlabeled, others)
    probabilities = there(training.probabilities)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(training.scores, training.model.scores(data.rows.taken(others)), atol=1e-3)
    answer, model = (training.model.labels_of(training.scores, each) for each in (probabilities, None))
    right, alone = (np.mean((each == data.truth[others])[others < 200]) for each in (answer, model))
    assert right > alone
    np.testing.assert_array_equal(answer[others >= 200], model[others >= 200])
    assert (there(training.held_out).shape, there(training.confidence).by_votes) == ((4, 3), True)
    assert "labels by votes that were left out" in there(training.report)["summary"][0]


def test_class_fractions_are_those_of_documents_with_votes_and_without() -> None:
    """Rules find half of one class, so the documents that none of them finds are mostly of the other."""
    data = pool(0, [0.5, 0.5], gap=3.0)
    answers = np.where((data.truth == 1) & (np.arange(400) % 4 < 3), 1, -1)[:, None]
    certain = np.random.default_rng(0).permutation(400)[:20]
    training = learned(data, answers, certain)
    assert there(training.report)["class_fractions"]["c1"] == pytest.approx(0.5, abs=0.06)
    told = {"c0": 0.7, "c1": 0.3}
    assert there(learned(data, answers, certain, options={"class_fractions": told}).report)["class_fractions"] == told


def test_the_same_votes_give_the_same_bits_on_any_number_of_threads() -> None:
    data = pool(0, [0.6, 0.4], n=200)
    votes = votes_of(people(data.truth, [0.8, 0.7, 0.6], 0, coverage=0.5), 2)
    task = TrainingTask(data.rows, known(data, np.arange(10)), ["c0", "c1"], "auto", {}, votes=votes)
    one, two = (train(task, TrainingContext(threads=threads)) for threads in (1, 2))
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    assert one.report == two.report


def test_labels_that_voters_gave_say_nothing_of_how_right_they_are() -> None:
    """Two people of three are right; the labels on which all agree stay."""
    data = pool(0, [0.6, 0.4], gap=2.2)
    answers = people(data.truth, [0.95, 0.95, 0.55], 1)
    agreed = (answers == answers[:, :1]).all(axis=1)
    task = TrainingTask(data.rows, np.where(agreed, answers[:, 0], -1), ["c0", "c1"], "auto", {})
    training = train(replace(task, votes=votes_of(answers, 2), by_voters=agreed), TrainingContext(threads=1))
    np.testing.assert_array_equal(training.unlabeled, np.flatnonzero(~agreed))
    assert there(training.report)["voters"]["voter-2"]["right"] == pytest.approx(0.55, abs=0.15)
    assert np.mean(there(training.probabilities).argmax(axis=1) == data.truth[~agreed]) > 0.85


def test_votes_for_one_class_alone_are_refused() -> None:
    data = pool(0, [0.6, 0.4], n=100)
    with pytest.raises(InvalidDocuments, match="all documents are of one class"):
        learned(data, np.zeros((100, 2), np.int64))


def test_a_rare_class_is_not_lost_among_people_who_err_more_often_than_it_occurs() -> None:
    """What most say then stands, and not one class alone."""
    data = pool(4, [0.9, 0.1], n=200, gap=0.3)
    answers = people(data.truth, [0.9, 0.6, 0.4], 4, coverage=0.6)
    assert len(learned(data, answers, algorithm="svm").model.classes) == 2


@pytest.mark.parametrize("algorithm", ["svm", "tsvm", "kernel_svm"])
def test_every_algorithm_learns_from_votes(algorithm: str) -> None:
    data = pool(0, [0.6, 0.4], gap=2.5)
    answers = people(data.truth, [0.9, 0.8, 0.8], 0, coverage=0.5)
    training = learned(data, answers, algorithm=algorithm)
    assert wrong(training, data) < 0.12
    assert set(there(training.report)["voters"]) == {"voter-0", "voter-1", "voter-2"}
    assert "no label is certain" in training.warnings[0]


@pytest.mark.usefixtures("every_report")
@pytest.mark.parametrize(
    ("certain", "after", "before"), [(0, 0.0, 0.3), (60, 0.4, 0.72)], ids=["voters", "certain labels alone"]
)
def test_a_stop_before_votes_are_learned_from_ends_the_training(certain: int, after: float, before: float) -> None:
    data = pool(0, [0.6, 0.4], n=200)
    watcher = Watcher(over=lambda point: point.fraction >= after)
    training = learned(data, people(data.truth, [0.8, 0.8], 0), range(certain), observer=watcher)
    assert training.status is Status.CANCELLED
    assert watcher.points[-1].fraction < before


def test_a_stop_while_all_texts_are_scored_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of certain labels alone holds out these alone."""

    def stopped(*given: Any) -> None:
        raise Stopped

    data = words(2, [0.5, 0.5])
    monkeypatch.setattr("core.train.scores_in_slices", stopped)
    training = learned(data, people(data.truth, [0.8, 0.8], 0), range(60))
    assert training.status is Status.CANCELLED


def test_the_report_says_which_fractions_are_a_guess_beside_votes() -> None:
    data = words(7, [0.6, 0.4], n=300)
    training = learned(data, people(data.truth, [0.8, 0.7], 0, coverage=0.5), range(12))
    guessed = there(training.report)["fractions"]["guessed"]
    assert any("is a guess" in each for each in training.warnings) == bool(guessed)


def test_votes_weigh_in_the_answers_what_their_model_does_in_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the geometric mean with what certain labels say."""
    data, odds = pool(0, [0.6, 0.4], gap=1.0), []
    answers = people(data.truth, [0.8, 0.7], 0, coverage=0.5)
    for weight in (0.0, 0.4, 1.0):
        monkeypatch.setattr(opinion_pool, "_weights", lambda *_, own=weight: np.array([1.0 - own, own]))
        training = learned(data, answers, range(60))
        logs = log(there(training.probabilities)[np.isin(training.unlabeled, np.flatnonzero(answers.max(axis=1) >= 0))])
        odds.append(logs[:, 1] - logs[:, 0])
    np.testing.assert_allclose(odds[1], 0.6 * odds[0] + 0.4 * odds[2], atol=1e-6)


def test_the_model_of_votes_is_brought_to_the_fractions_of_all_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule finds one class alone."""
    data = words(0, [0.5, 0.5])
    answers = np.where((data.truth == 1) & (np.arange(400) % 4 < 3), 1, -1)[:, None]
    monkeypatch.setattr(opinion_pool, "_weights", lambda *_: np.array([1.0, 0.0]))
    for options, expected in (({}, 0.5), ({"class_fractions": {"c0": 0.7, "c1": 0.3}}, 0.3)):
        model = learned(data, answers, np.random.default_rng(0).permutation(400)[:40], options=options).model
        assert there(model.probabilities(model.scores(data.rows)))[:, 1].mean() == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("algorithm", ["auto", "svm"])
def test_a_class_without_a_certain_label_is_learned_from_its_votes(algorithm: str) -> None:
    """Whatever certain labels say of the votes for other classes."""
    data = pool(2, [0.4, 0.3, 0.3], gap=2.5)
    for_one = np.where((data.truth == 2) & (np.arange(400) % 3 == 0), 2, -1)
    answers = np.column_stack([np.where(np.arange(400) % 2 == 0, np.maximum(-1, 1 - data.truth), -1), for_one])
    assert wrong(learned(data, answers, np.flatnonzero(data.truth < 2)[:40], algorithm), data) < 0.3


WORDS, NOISE, OUTVOTED = words(0, [0.6, 0.4]), pool(0, [0.6, 0.4], gap=0.0), pool(2, [0.4, 0.5, 0.1])
EVERYWHERE = WORDS.truth[:, None]


@pytest.mark.parametrize(
    ("data", "answers", "certain", "told"),
    [
        (WORDS, EVERYWHERE, range(40), None),
        (WORDS, np.where(((WORDS.truth == 1) | (np.arange(400) % 8 > 0))[:, None], EVERYWHERE, -1), range(40), None),
        (
            NOISE,
            np.where(np.arange(400) < 390, 0, 1)[:, None],
            range(380, 400),
            "all 380 unlabeled documents get class",
        ),
        (
            OUTVOTED,
            np.column_stack([np.minimum(OUTVOTED.truth, 1)] * 2 + [np.where(OUTVOTED.truth == 2, 2, -1)]),
            np.flatnonzero(OUTVOTED.truth < 2)[:40],
            "by all votes together no document is of class 'c2'",
        ),
    ],
    ids=["votes everywhere", "no votes on some of one class", "one class for all", "outvoted"],
)
def test_warnings_are_true_of_the_sum(data: Pool, answers: Answers, certain: Iterable[int], told: str | None) -> None:
    """And not of a part of it, which learns from the documents with votes alone."""
    found = [each for each in learned(data, answers, certain).warnings if "document" in each and "a guess" not in each]
    assert not found if told is None else any(each.startswith(told) for each in found)
