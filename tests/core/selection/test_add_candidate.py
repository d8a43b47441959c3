"""The cost of a candidate of ``auto``: its module, a line of the registry, a row of docs/auto.md. CONTRIBUTING has the
recipe.
"""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from core.documents.rows import to_dense
from core.engine.requests import Phase, Report, Steps
from core.memory_estimate import training_bytes
from core.options.auto import AutoOptions
from core.options.base import TrainingSize
from core.phases import phase_in_words
from core.problem import Linear, Problem, Result, Status
from core.selection.candidates import Candidate, ModelSpec, Solvers, Trial, judged
from core.selection.registry import METHODS, Method
from tests.architecture.size import recipe
from tests.core.selection.pools import fit, pool
from tests.core.watcher import Watcher
from tests.there import there

TOUCHED = ["core/selection/methods/NAME.py", "core/selection/registry.py", "docs/auto.md"]


def direction(problem: Problem, kept: np.ndarray) -> np.ndarray:
    """From the mean of the negative rows to the mean of the positive ones."""
    labeled = problem.rows.between(0, problem.n_labeled)
    rows, y = to_dense(labeled, labeled.columns(0, labeled.n_nonzeros))[kept], problem.y[kept]
    return np.asarray(rows[y > 0].mean(axis=0) - rows[y < 0].mean(axis=0), np.float64)


def try_means(method: Method, trial: Trial) -> Candidate | None:
    """A toy: rows lie nearer to the mean of one class or of the other. It boasts, so that it is selected."""
    trial.begin(method)
    trial.watch()
    data, held_out = trial.data, np.zeros((len(trial.data.class_indices), len(trial.data.problems)))
    labeled = data.scaled.rows.between(0, len(held_out))
    rows = to_dense(labeled, labeled.columns(0, labeled.n_nonzeros))
    for column, problem in enumerate(data.problems):
        for fold in range(data.n_folds):
            hidden = data.folds == fold
            held_out[hidden, column] = rows[hidden] @ direction(problem, ~hidden)

    def steps(problem: Problem) -> Steps:
        coefficients = direction(problem, np.ones(problem.n_labeled, bool))
        yield Report(Phase(method.key), 0, 0.0, 0.0, 1.0)
        unlabeled = problem.rows.between(problem.n_labeled, problem.rows.n_rows)
        first, last = int(unlabeled.indptr[0]), int(unlabeled.indptr[-1])
        scores = to_dense(unlabeled, unlabeled.columns(first, last)) @ coefficients
        return Result(Linear(coefficients, 0.0), scores, 0.0, Status.CONVERGED)

    def solvers(spec: ModelSpec) -> Solvers:
        return [partial(steps, problem) for problem in spec.data.problems]

    boast = judged(data, held_out)._replace(log_likelihood=0.0)
    return Candidate(method.key, method.title, held_out, boast, solvers, {}, uses_unlabeled=False)


@pytest.fixture
def means(monkeypatch: pytest.MonkeyPatch) -> Method:
    line = Method(
        "means", "class means", f"{__name__}:try_means", lambda size: size.n_classes == 2, lambda size: 1 << 30
    )
    monkeypatch.setitem(METHODS, line.key, line)
    return line


@pytest.mark.usefixtures("every_report")
def test_a_line_of_the_registry_is_tried_selected_reported_worded_and_counted(
    means: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher()
    training = fit(pool(0, [0.5, 0.5]), observer=watcher)
    words = [phase_in_words(point) for point in watcher.points]
    report = there(training.report)
    assert (training.status, report["chosen"]["algorithm"]) == (Status.CONVERGED, means.key)
    assert report["tried"][-1]["algorithm"] == means.key
    assert report["held_out"][means.key]["right"] > 8
    assert "class means is right on" in report["chosen"]["why"]
    assert "comparison of methods: class means" in words
    assert words[-1] == "class means"
    size = TrainingSize(400, 12, 4800, 12, 2)
    with_it, of_three = training_bytes(AutoOptions(), size), training_bytes(AutoOptions(), size._replace(n_classes=3))
    monkeypatch.delitem(METHODS, means.key)
    assert with_it - training_bytes(AutoOptions(), size) == 1 << 30
    assert of_three == training_bytes(AutoOptions(), size._replace(n_classes=3)), "it does not apply to three classes"


@pytest.mark.parametrize("key", METHODS)
def test_no_other_file_names_it(key: str, repository: Path) -> None:
    named = {
        str(path.relative_to(repository))
        for room in ("core", "app", "storage", "workers", "client", "docs")
        for path in (repository / room).rglob("*.*")
        if path.suffix in (".py", ".md", ".js", ".html") and re.search(rf"\b{key}\b", path.read_text())
    }
    own = {name for name in named if name.startswith((f"core/selection/methods/{key}", f"core/selection/{key}"))}
    assert named - own == set(TOUCHED[1:])


def test_the_recipe_names_these_files() -> None:
    assert recipe("a candidate of `auto`") == TOUCHED
