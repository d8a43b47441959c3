"""How right voters are, against a plain computation and drawn answers."""

from dataclasses import replace

import numpy as np
import pytest

from core.weak_supervision.voters import UNCERTAIN_LABELS, Ballots, VoterModel
from tests.core.weak_supervision.voting import people, rules, votes_of
from tests.memory import measured

TRUTH = np.random.default_rng(0).permutation(np.repeat([0, 1, 1, 2], 50))
ONE_HOT = np.eye(3)[TRUTH]
EVERY, NONE = np.ones(200, bool), np.zeros(200, bool)
PRIORS = np.array([0.25, 0.5, 0.25])


def test_posteriors_are_those_of_a_plain_computation() -> None:
    answers = people(TRUTH, [0.8, 0.6, 0.7], seed=1, n_classes=3, coverage=0.6)
    votes = votes_of(answers, 3)
    halved = replace(votes, probability=np.where(np.arange(len(votes.probability)) % 3, 1.0, 0.5))
    rng = np.random.default_rng(2)
    known = rng.dirichlet(np.ones(3), 200)
    certain = rng.random(200) < 0.3
    model = VoterModel.of(Ballots.of(halved), known, certain, PRIORS)
    found = model.posteriors(np.log(np.tile(PRIORS, (200, 1))))
    given = np.zeros((200, 3, 3))
    given[halved.owners, halved.voter, halved.class_index] = halved.probability
    sure, guessed = (np.einsum("nvc,nk->vck", given[own], known[own]) for own in (certain, ~certain))
    guessed *= np.minimum(1.0, UNCERTAIN_LABELS / guessed.sum(axis=2, keepdims=True))
    before = PRIORS * np.where(np.eye(3, dtype=bool), 0.7, 0.15)
    tables = 2.0 * before / before.sum(axis=1, keepdims=True) + sure + guessed
    tables /= tables.sum(axis=2, keepdims=True)
    said = np.einsum("nvc,vck->nvk", given, tables) + (1 - given.sum(axis=2, keepdims=True)) * PRIORS
    odds = PRIORS * ((said / PRIORS) ** model.voices()[:, None]).prod(axis=1)
    np.testing.assert_allclose(found, odds / odds.sum(axis=1, keepdims=True), atol=1e-12)


def test_who_abstains_says_nothing() -> None:
    answers = rules(TRUTH, [0.9, 0.9], coverage=0.1, seed=0)
    model = VoterModel.of(Ballots.of(votes_of(answers, 3)), ONE_HOT, EVERY, PRIORS)
    silent = (answers < 0).all(axis=1)
    assert silent.sum() > 100
    found = model.posteriors(np.log(np.tile(PRIORS, (200, 1))))
    np.testing.assert_allclose(found[silent], np.tile(PRIORS, (silent.sum(), 1)))
    assert (found[(answers[:, 0] == 0) & (answers[:, 1] < 0), 0] > 0.8).all()


def test_the_interval_of_a_voter_holds_how_often_it_is_right() -> None:
    rights, held, wide = [0.9, 0.75, 0.6, 0.2], 0, []
    for seed in range(10):
        votes = votes_of(people(TRUTH, rights, seed, n_classes=3), 3)
        model = VoterModel.of(Ballots.of(votes), ONE_HOT, EVERY, PRIORS)
        report = model.report(votes, ONE_HOT)
        for (name, own), right in zip(report.items(), rights, strict=True):
            held += own["low"] <= right <= own["high"]
            assert own["coverage"] == 1.0, name
        wide.append(report["voter-0"]["high"] - report["voter-0"]["low"])
    assert held >= 36
    unknown = VoterModel.of(Ballots.of(votes), ONE_HOT, NONE, PRIORS).report(votes, ONE_HOT)["voter-0"]
    assert unknown["high"] - unknown["low"] > 1.5 * max(wide)


def test_copies_share_one_voice() -> None:
    """What two voters say who make the same mistakes weighs as what one says."""
    alone = people(TRUTH, [0.7, 0.8], seed=3, n_classes=3)
    twice = np.column_stack([alone[:, 0], alone])
    flat = np.log(np.tile(PRIORS, (200, 1)))
    found, plain = (
        VoterModel.of(Ballots.of(votes_of(answers, 3)), ONE_HOT, EVERY, PRIORS) for answers in (twice, alone)
    )
    assert found.voices()[:2] == pytest.approx([0.5, 0.5], abs=0.05)
    assert plain.voices() == pytest.approx([1.0, 1.0], abs=0.1)
    np.testing.assert_allclose(found.posteriors(flat), plain.posteriors(flat), atol=0.08)
    report = found.report(votes_of(twice, 3), ONE_HOT)
    assert [list(each["copies"]) for each in report.values()] == [["voter-1"], ["voter-0"], []]


def test_many_voters_on_each_document_take_little_memory() -> None:
    """Of 300 voters there are 45,000 pairs a document, of which each took some 100 bytes."""
    ballots = Ballots.of(votes_of(people(TRUTH[:40], [0.7] * 300, seed=3, n_classes=3), 3))
    with measured() as memory:
        model = VoterModel.of(ballots, ONE_HOT[:40], EVERY[:40], PRIORS)
    assert len(model.voices()) == 300
    assert memory.peak < 16 << 20


def test_votes_that_decide_are_worth_most() -> None:
    """One voter is nearly always right, one guesses."""
    votes = votes_of(people(TRUTH, [0.95, 0.34], seed=4, n_classes=3), 3)
    model = VoterModel.of(Ballots.of(votes), ONE_HOT, EVERY, PRIORS)
    report = model.report(votes, model.posteriors(np.log(np.tile(PRIORS, (200, 1)))))
    worth = [own["worth"] for own in report.values()]
    assert worth[0] > 60
    assert worth[1] < 5


@pytest.mark.parametrize("right", [[0.6, 0.7, 0.8, 0.9, 0.75], [0.2, 0.6, 0.7, 0.8, 0.9]], ids=["honest", "adversary"])
def test_people_who_are_unsure_of_the_same_documents_are_no_copies(right: list[float]) -> None:
    truth = np.random.default_rng(5).integers(0, 2, 1500)
    ballots = Ballots.of(votes_of(people(truth, right, seed=6, coverage=0.6), 2))
    found = ballots.counted() + 1e-9
    found /= found.sum(axis=1, keepdims=True)
    majority = np.mean((found.argmax(axis=1) == truth)[ballots.voted])
    for _ in range(10):
        model = VoterModel.of(ballots, found, np.zeros(1500, bool), found[ballots.voted].mean(axis=0))
        found = model.posteriors(np.log(np.tile(model.priors, (1500, 1))))
    assert model.voices().tolist() == [1.0] * 5
    assert np.mean((found.argmax(axis=1) == truth)[ballots.voted]) > majority + 0.02
