"""Many solvers over one matrix."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from core.documents.rows import SparseRows
from core.engine.passes import Passes
from core.engine.requests import Barrier, Phase, Product, Report, Steps, Stopped
from core.engine.runner import Scheduler
from core.numerics import width
from core.numerics.width import WIDTH
from core.options.linear import SvmOptions
from core.problem import Linear, Result, Status
from tests.calls import noted
from tests.core.problems import dense_of, random_rows, small, solve, weights_of, with_bias

ROWS = SparseRows(np.array([0, 1, 2]), np.array([0, 1], np.uint32), np.array([2, 3], np.float32), 2)


class Crowd:
    """Solvers that count how many of them are alive."""

    def __init__(self) -> None:
        self.alive = self.most = 0

    def member(self, number: int) -> Callable[[], Steps]:
        return lambda: self._steps(number)

    def _steps(self, number: int) -> Steps:
        self.alive += 1
        self.most = max(self.most, self.alive)
        weights, scores, status = np.ones(2), np.zeros(2), Status.CONVERGED
        image = np.zeros(3)
        try:
            for _ in range(number % 3 + 1):
                yield Report(Phase("turn"), 0, 0.0, 0.0, 0.0)
                image = yield Product(np.array([1.0, 1.0, float(number)]), weights, scores)
        except Stopped:
            status = Status.CANCELLED
        self.alive -= 1
        return Result(Linear(image[:2], float(image[2])), scores, float(number), status)


@pytest.mark.parametrize(("short", "most"), [(0, WIDTH), (ROWS.n_rows + ROWS.n_features, 2 * WIDTH - 1)])
def test_solvers_take_turns_and_each_gets_its_own_answers(
    monkeypatch: pytest.MonkeyPatch, short: int, most: int
) -> None:
    """No more are alive at a time than fill a block, but of short vectors the last ones all are."""
    monkeypatch.setattr(width, "_SHORT", short)
    crowd = Crowd()
    with Scheduler(ROWS) as scheduler:
        results = scheduler.run({Phase(fold=number): crowd.member(number) for number in range(3 * WIDTH + 1)})
    assert WIDTH <= crowd.most <= most
    assert (crowd.most > WIDTH) == (most > WIDTH)
    assert [result.objective for result in results] == list(range(3 * WIDTH + 1))
    for number, result in enumerate(results):
        scores = np.array([2.0 + number, 3.0 + number])
        assert np.array_equal(result.unlabeled_scores, scores)
        assert np.array_equal(weights_of(result), [2 * scores[0], 3 * scores[1], scores.sum()])


def test_the_last_solvers_take_turns_so_that_blocks_are_full_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve of eight products each: twelve blocks of eight, and not eight of eight and eight of four."""
    sizes = noted(monkeypatch, Passes, "products", lambda _, requests: len(requests))

    def steps(number: int) -> Steps:
        scores = np.zeros(2)
        for _ in range(8):
            yield Product(np.array([1.0, 1.0, float(number)]), np.ones(2), scores)
        return Result(Linear(np.zeros(2), 0.0), scores, float(number), Status.CONVERGED)

    with Scheduler(ROWS) as scheduler:
        results = scheduler.run({Phase(fold=number): partial(steps, number) for number in range(12)})
    assert sizes == [WIDTH] * 12
    assert [result.unlabeled_scores.tolist() for result in results] == [
        [2.0 + number, 3.0 + number] for number in range(12)
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_solvers_of_a_meeting_wait_for_each_other_and_hear_the_same(threads: int) -> None:
    """Three of them work for different numbers of rounds before it, twice; another works meanwhile and waits for
    nobody.
    """
    log: list[str] = []

    def decide() -> int:
        log.append("met")
        return len(log)

    meeting = Barrier(3, decide)
    heard: list[list[int]] = [[], [], []]

    def member(number: int) -> Steps:
        scores = np.zeros(2)
        for turn in range(2):
            for _ in range(number + turn + 1):
                yield Product(np.ones(3), np.ones(2), scores)
            log.append(f"come {turn}")
            heard[number].append((yield meeting))
        return Result(Linear(np.zeros(2), 0.0), scores, 0.0, Status.CONVERGED)

    with Scheduler(ROWS, threads=threads) as scheduler:
        scheduler.run(
            {**{Phase(fold=number): partial(member, number) for number in range(3)}, Phase(): Crowd().member(5)}
        )
    assert log == ["come 0"] * 3 + ["met"] + ["come 1"] * 3 + ["met"]
    assert heard[0] == heard[1] == heard[2] == [4, 8]


def test_a_product_of_few_rows_waits_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver goes on by products that read little until it wants a pass that pays for a block; only those are
    together.
    """
    rows = random_rows(np.random.default_rng(3), 40, 9, density=0.5)
    together = noted(
        monkeypatch, Passes, "products", lambda _, requests: [np.count_nonzero(each.weights) for each in requests]
    )

    def steps(n_light: int) -> Steps:
        answers = []
        for read in (40, *[1] * n_light, 40):
            answers.append((yield Product(np.ones(10), (np.arange(40) < read).astype(float), np.zeros(40))))
            yield Report(Phase("turn"), 0, 0.0, 0.0, 0.0)
        return Result(Linear(np.concatenate(answers), 0.0), np.zeros(0), 0.0, Status.CONVERGED)

    with Scheduler(rows) as scheduler:
        results = scheduler.run({Phase(fold=number): partial(steps, number) for number in range(4)})
    assert together == [[40] * 4] * 2
    X = with_bias(dense_of(rows))
    whole, one = X.T @ (X @ np.ones(10)), X[0] * X[0].sum()
    for number, result in enumerate(results):
        np.testing.assert_allclose(weights_of(result)[:-1], np.concatenate([whole, *[one] * number, whole]), rtol=1e-12)
        assert result.passes == pytest.approx(2 + number / 40)


@pytest.mark.usefixtures("every_report")
def test_a_stop_reaches_the_solvers_that_have_not_begun() -> None:
    crowd = Crowd()
    with Scheduler(ROWS, observer=lambda _: True) as scheduler:
        results = scheduler.run({Phase(fold=number): crowd.member(number) for number in range(3 * WIDTH)})
    assert [result.status for result in results] == [Status.CANCELLED] * (3 * WIDTH)
    assert crowd.alive == 0


def test_the_supervised_trace_tells_its_own_objective_and_how_far_it_is() -> None:
    result = solve("svm", small(0).problem, SvmOptions())
    assert [point.objective for point in result.trace] == [point.stage_objective for point in result.trace]
    fractions = [point.fraction for point in result.trace]
    assert fractions[0] == 0.0
    assert fractions[-1] == 1.0
    assert fractions == sorted(fractions)
    assert len(set(fractions)) > 2
