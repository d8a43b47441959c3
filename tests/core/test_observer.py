"""Progress and cancel: stop at any call, get the best so far, run again; test_silence is about how soon a stop is
heard.
"""

from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core import progress
from core.engine import passes
from core.models import assembly
from core.options.base import Options
from core.phases import phase_in_words
from core.problem import Result, Status
from core.progress import Phase, TracePoint
from core.registry import ALGORITHMS, OFFERED
from core.train import TrainingContext, TrainingTask, train
from tests.calls import noted
from tests.core.problems import LINEAR, Small, small, solve, weights_of
from tests.core.watcher import Watcher
from tests.reference.mfn import objective as svm_objective
from tests.reference.transductive import J_of, labeled_costs

ESTIMATED = ("tsvm", "da", "cuts3vm", "gradient_tsvm", "kernel_da", "lds", "potts", "s4vm", "coregularized_svm")
ESTIMATING = {
    "auto": (0.042, 0.895),
    **dict.fromkeys((*ESTIMATED, "cccp_tsvm", "ctsvm"), (0.0, 0.1)),
}
"""shares of the work between which class fractions are estimated, and by `auto` the transductive SVM is compared"""


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The observer is asked at every request and between small slices, not only every so many milliseconds."""
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    monkeypatch.setattr(passes, "SLICE", 64)


def given(name: str) -> dict[str, Any]:
    """Options of an algorithm; with them the data choose no kernel, which test_kernel_tuning is about."""
    if name in ("kernel_svm", "ramp_svm", "cccp_tsvm"):
        return {"gamma": 0.3, "C": 5.0}
    return {"lambda": 1e-2} if name in LINEAR else {}


def options_of(name: str) -> Options:
    return ALGORITHMS[name].options.parse(given(name))


def labels_of(data: Small, n_classes: int) -> NDArray[np.int32]:
    """Class indices of the same labeled rows, of so many classes."""
    every = data.class_indices if n_classes == 2 else np.arange(data.rows.n_rows) % n_classes
    return np.where(data.class_indices < 0, -1, every).astype(np.int32)


def check_best(name: str, data: Small, result: Result) -> None:
    """A cancelled result is finite, and its objective is right or NaN."""
    w = weights_of(result)
    assert np.isfinite(w).all()
    known = np.isfinite(result.unlabeled_scores)
    np.testing.assert_allclose(result.unlabeled_scores[known], (data.X[len(data.y) :] @ w)[known], atol=1e-9)
    assert known.all() or np.isnan(result.objective)
    assert not np.isinf(result.objective)
    if np.isfinite(result.objective):
        expected = (
            svm_objective(data.X, *labeled_costs(data.y, 60), 1e-2, w)
            if name == "svm"
            else J_of(data.X, data.y, 1e-2, 1.0, w)
        )
        assert result.objective == pytest.approx(expected, rel=1e-9)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("init", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("name", LINEAR)
def test_it_stops_wherever_it_is_asked_to(name: str, init: bool) -> None:
    data = small(3, n=60, labeled=10, gap=0.25)
    options, start = options_of(name), np.ones(data.X.shape[1]) if init else None
    everything = Watcher()
    whole = solve(name, data.problem, options, init=start, observer=everything)
    assert whole.status is Status.CONVERGED
    calls = len(everything.points)
    assert calls > 20
    finite = 0
    for k in sorted({*range(1, 20), *range(20, calls, max(1, calls // 40))}):
        watcher = Watcher(stop_at=k)
        stopped = solve(name, data.problem, options, init=start, observer=watcher)
        assert stopped.status is Status.CANCELLED
        assert len(watcher.points) == k, "it is not asked again after it said stop"
        check_best(name, data, stopped)
        finite += bool(np.isfinite(stopped.objective))
    assert finite > 0 or name == "svm"
    again = solve(name, data.problem, options, init=start)
    np.testing.assert_array_equal(weights_of(again), weights_of(whole))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", OFFERED)
def test_a_cancelled_training_has_a_model_and_changes_nothing_for_the_next(name: str, n_classes: int) -> None:
    data, everything = small(3, n=60, labeled=12, gap=0.25), Watcher()
    task = TrainingTask(data.rows, labels_of(data, n_classes), list(range(n_classes)), name, given(name))
    whole = train(task, TrainingContext(observer=everything))
    calls = len(everything.points)
    # of three problems the last to be asked may have ended by then
    late = calls - 2 if n_classes == 2 else calls // 2
    for k in sorted({1, 4, min(30, late), late // 2, late}):
        watcher = Watcher(stop_at=k)
        stopped = train(task, TrainingContext(observer=watcher))
        assert stopped.status is Status.CANCELLED
        assert len(watcher.points) == k, "it is not asked again after it said stop"
        scores, known = stopped.model.scores(data.rows)[stopped.unlabeled], np.isfinite(stopped.scores)
        assert np.isfinite(scores).all()
        if name != "ctsvm":  # its model only comes near to the scores
            np.testing.assert_allclose(scores[known], stopped.scores[known], rtol=1e-4, atol=1e-4)
        assert len(scores) == len(whole.scores)
    assert n_classes > 2 or stopped.model.scores(data.rows).any(), "so late there is an iterate"
    np.testing.assert_array_equal(train(task).scores, whole.scores)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_is_told_goes_forward(name: str) -> None:
    watcher = Watcher()
    data = small(5, n=60, labeled=10, gap=0.25)
    result = solve(name, data.problem, options_of(name), observer=watcher)
    for before, after in pairwise(watcher.points):
        assert before.seconds <= after.seconds
        assert 0 <= before.fraction <= after.fraction <= 1
    for before, after in pairwise(result.trace):
        assert before.seconds <= after.seconds
    assert {point.phase for point in watcher.points} <= {Phase(), *(point.phase for point in result.trace)}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", OFFERED)
def test_progress_never_falls_and_is_spread_over_all_that_is_run(name: str, n_classes: int) -> None:
    watcher, data = Watcher(), small(5, n=30, labeled=15, gap=0.25)
    # the phases of calibration are the same for all
    task = TrainingTask(
        data.rows,
        labels_of(data, n_classes),
        list(range(n_classes)),
        name,
        {"probabilities": True} if name == "svm" else {},
    )
    training = train(task, TrainingContext(observer=watcher))
    assert training.status is not Status.CANCELLED
    fractions, seconds = ([getattr(point, field) for point in watcher.points] for field in ("fraction", "seconds"))
    assert seconds == sorted(seconds)
    assert fractions == sorted(fractions)
    assert fractions[0] == 0.0
    assert fractions[-1] == 1.0
    assert watcher.points[-1].phase == (training.trace[-1].phase if training.trace else Phase(name))
    estimating = [point.fraction for point in watcher.points if point.phase.purpose in ("supervised", "candidate")]
    first, last = ESTIMATING.get(name, (0.0, 0.0))
    assert all(first <= fraction <= last for fraction in estimating)
    if name in ESTIMATING:
        assert estimating[0] <= first + 0.05 * (last - first)
        assert len(np.unique(np.floor(20 * (np.array(estimating) - first) / (last - first)))) > 10, (
            "it stands still for long"
        )
    solving = [
        point.fraction for point in watcher.points[:-1] if point.phase in {each.phase for each in training.trace}
    ]
    assert min(solving, default=last) <= last + 0.6 * (1.0 - last), "it is over before its time"
    words = {phase_in_words(point) for point in watcher.points}
    assert [phase for phase in words if "/" in phase or "=" in phase] == []
    stages = [phase for phase in words if "stage" in phase]
    assert all(" of " in phase.split("stage")[1] for phase in stages)
    assert stages or name not in ("auto", "tsvm", "da")


def test_the_observer_is_asked_when_it_is_time_and_no_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by a tenth of the interval whenever it is read, which is at every chance to ask and at
    every report.
    """
    tick = progress.SECONDS / 10
    clock = count()
    monkeypatch.setattr("core.progress.time.monotonic", lambda: next(clock) * tick)
    watcher, data = Watcher(), small(5, n=60, labeled=10, gap=0.25)
    solve("tsvm", data.problem, options_of("tsvm"), observer=watcher)
    waits = np.diff([point.seconds for point in watcher.points])
    assert len(waits) > 3
    assert waits.min() >= progress.SECONDS * (1 - 1e-9)
    assert waits.max() <= progress.SECONDS + 3 * tick


@pytest.mark.usefixtures("eager")
def test_an_observer_that_fails_fails_the_training() -> None:
    def broken(point: TracePoint, /) -> bool:
        raise FileNotFoundError

    data = small(5)
    with pytest.raises(FileNotFoundError):
        train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "da", {}), TrainingContext(observer=broken))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", ["tsvm", "cccp_tsvm"])
def test_time_goes_on_when_the_solver_follows_the_estimate(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Seconds count from the beginning of the training, in all reports and in the trace."""
    clock = count()
    monkeypatch.setattr("core.progress.time.monotonic", lambda: float(next(clock)))
    watcher, data = Watcher(), small(5, n=60, labeled=15, gap=0.25)
    training = train(
        TrainingTask(data.rows, data.class_indices, ["a", "b"], name, {}), TrainingContext(observer=watcher)
    )
    assert any(point.phase.purpose == "supervised" for point in watcher.points)
    assert all(before.seconds < after.seconds for before, after in pairwise(watcher.points[:-1]))
    estimated = max(point.seconds for point in watcher.points if point.phase.purpose == "supervised")
    assert training.trace[0].seconds > estimated > 0


@pytest.mark.usefixtures("eager")
def test_a_start_from_a_large_model_is_scored_in_little_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bounded work for each model, and the scores of all pieces come in the order of the rows."""
    data = small(5, n=300, labeled=100, gap=0.25)
    first = train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "kernel_svm", {}))
    whole = train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "ramp_svm", {}, start=first.model))
    heights = noted(monkeypatch, type(first.model), "scores", lambda _, rows: rows.n_rows)
    monkeypatch.setattr(assembly, "_WORK", 7 * first.model.row_work)
    again = train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "ramp_svm", {}, start=first.model))
    assert sum(heights) == 300
    assert max(heights) <= 8
    np.testing.assert_array_equal(again.scores, whole.scores)
