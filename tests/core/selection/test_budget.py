"""A selection that is given so many seconds, on a clock that goes on by the number of times it is read."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from core import progress
from core.problem import Status
from core.progress import Stopped, TracePoint, Watch
from core.selection import auto
from core.selection.candidates import Candidate, candidates_of
from core.selection.registry import METHODS
from core.train import Training
from tests.core.problems import rows_of
from tests.core.selection.pools import Pool, error, fit, pool
from tests.core.watcher import Watcher
from tests.there import there


class Clock:
    """Each reading is .1 s after the one before, so that every look at the time is also one at the deadline."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.1
        return self.now


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Pool, float | None], tuple[Training, float]]:
    """Trains with a budget of seconds; also the seconds that it took by that clock."""

    def train(data: Pool, seconds: float | None) -> tuple[Training, float]:
        clock = Clock()
        monkeypatch.setattr(progress, "time", clock)
        return fit(data, options={} if seconds is None else {"seconds": seconds}), clock.now

    return train


def words(seed: int) -> Pool:
    """Sparse counts, so that naive Bayes is offered and neighbours are not."""
    rng = np.random.default_rng(seed)
    truth = np.arange(300) % 2
    class_indices = np.where(np.arange(300) < 16, truth, -1).astype(np.int32)
    likely = np.where(np.arange(100) % 2 == truth[:, None], 0.09, 0.03)
    return Pool(rows_of((rng.random((300, 100)) < likely).astype(float)), class_indices, truth)


@pytest.mark.parametrize("data", [pool(0, [0.6, 0.4]), words(0)], ids=["dense", "words"])
def test_a_budget_is_kept_whatever_it_is(
    timed: Callable[[Pool, float | None], tuple[Training, float]], data: Pool
) -> None:
    """From nothing to plenty: the more seconds, the more methods are tried; with enough it is the model without a
    bound.
    """
    whole, needed = timed(data, None)
    assert whole.report is not None
    everything, last = [each["algorithm"] for each in whole.report["tried"]], 0
    for share in (0.001, 0.2, 0.5, 0.9, 3.0):
        seconds = share * needed
        training, taken = timed(data, seconds)
        assert training.report is not None
        tried = [each["algorithm"] for each in training.report["tried"]]
        assert tried == everything[: len(tried)]
        assert len(tried) >= max(last, 1)
        last = len(tried)
        assert training.status in (Status.CONVERGED, Status.ITERATION_LIMIT)
        assert np.isfinite(training.scores).all()
        assert training.probabilities is not None
        assert error(training, data) < 0.45
        time = training.report["time"]
        assert time["all_methods_tried"] == (tried == everything)
        assert any("seconds were over" in warning for warning in training.warnings) == (
            not (time["all_methods_tried"] and time["solved"])
        )
        if share >= 0.2:
            assert taken < seconds + 0.35 * needed  # the supervised SVM, and what one slice of work takes
    np.testing.assert_array_equal(training.scores, whole.scores)
    assert "time" not in whole.report


def test_what_is_ready_when_the_time_is_over_has_a_part(
    timed: Callable[[Pool, float | None], tuple[Training, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*given: Any, **named: Any) -> Iterator[Candidate]:
        candidates, ask = candidates_of(*given, **named), given[5]
        yield next(candidates)
        yield next(candidates)
        while True:
            ask()

    monkeypatch.setattr(auto, "candidates_of", slow)
    report = there(timed(pool(0, [0.6, 0.4]), 1000.0)[0].report)
    assert [each["algorithm"] for each in report["tried"]] == ["svm", "tsvm"]
    assert report["time"] == {"seconds": 1000.0, "all_methods_tried": False, "solved": True}
    assert report["chosen"]["weights"]["tsvm"] > 0


@pytest.mark.parametrize("given", [{"positive_fraction": 0.2}, {"class_fractions": {"c0": 0.8, "c1": 0.2}}])
def test_fractions_that_are_given_stand_where_there_is_no_time_for_any_method(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervised SVM alone is ready, which estimates none."""
    monkeypatch.setattr(progress, "time", Clock())
    training = fit(pool(0, [0.6, 0.4]), options={**given, "seconds": 1e-6})
    assert training.report is not None
    assert [each["algorithm"] for each in training.report["tried"]] == ["svm"]
    assert training.report["class_fractions"] == pytest.approx({"c0": 0.8, "c1": 0.2})
    assert training.report["estimate"] is None
    assert there(training.probabilities)[:, 1].mean() == pytest.approx(0.2, abs=1e-3)


def test_the_report_is_of_the_candidate_that_is_taken_when_time_ends_before_the_sum(
    timed: Callable[[Pool, float | None], tuple[Training, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pool(0, [0.6, 0.4])
    whole = there(timed(data, None)[0].report)
    assert len(whole["chosen"]["weights"]) > 1

    def slow(*given: Any) -> None:
        while True:
            given[-1]()

    monkeypatch.setattr(auto, "co_validate", slow)
    report = there(timed(data, 1000.0)[0].report)
    assert report["time"] == {"seconds": 1000.0, "all_methods_tried": True, "solved": False}
    first = whole["chosen"]["algorithm"]
    assert report["chosen"]["algorithm"] == first
    assert report["chosen"]["weights"] == {first: 1.0}
    assert report["chosen"]["why"].endswith(
        f"the time was over before scores could be added: {METHODS[first].title}, which weighs most, is taken alone"
    )


@pytest.mark.usefixtures("every_report")
@pytest.mark.parametrize(("data", "solved"), [(pool(0, [0.6, 0.4]), 0.92), (words(0), 0.96)], ids=["kernel", "linear"])
def test_a_stop_before_the_sum_is_made_is_a_stop(data: Pool, solved: float) -> None:
    """The first candidate may have converged by then: it is not the model that was chosen, and nobody waited for
    that."""
    asked: list[float] = []

    def once(point: TracePoint, /) -> bool:
        asked.append(point.fraction)
        return point.fraction > solved and sum(fraction > solved for fraction in asked) == 1

    training = fit(data, observer=once)
    assert training.status is Status.CANCELLED
    assert training.report is not None
    weights = training.report["chosen"]["weights"]
    assert weights == {training.report["chosen"]["algorithm"]: 1.0}
    assert "the training was stopped before scores could be added" in training.report["chosen"]["why"]


@pytest.mark.usefixtures("every_report")
def test_a_stop_by_the_observer_is_one_within_a_budget() -> None:
    watcher = Watcher(over=lambda point: point.fraction > 0.3)
    assert fit(pool(0, [0.6, 0.4]), options={"seconds": 1000.0}, observer=watcher).status is Status.CANCELLED


def test_work_goes_on_when_a_part_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "time", Clock())
    ask = Watch(None)
    with ask.until(0.45) as deadline:
        for _ in range(4):
            ask()
        with pytest.raises(Stopped):
            ask()
    assert deadline.over
    assert not ask.stopped
    ask()
    with ask.until(None) as other:
        ask()
    assert not other.over
