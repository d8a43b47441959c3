"""Phases are reported in words, whatever a training runs and whatever its classes are called."""

import numpy as np
import pytest

from core import watch
from core.phases import phase_in_words
from core.progress import TracePoint
from core.registry import OFFERED
from core.train import TrainingContext, TrainingTask, train
from tests.core.problems import small


@pytest.mark.parametrize(
    ("path", "stages", "words"),
    [
        ("", 0, "starting"),
        ("terms", 0, "finding the terms of the texts"),
        ("auto", 0, "preparing the documents"),
        ("svm", 0, "svm"),
        ("tsvm/svm", 0, "tsvm, supervised solution"),
        ("tsvm/stage=17", 18, "tsvm, stage 18 of 18"),
        ("tsvm/stage=17", 0, "tsvm, stage 18"),
        ("class=sport/da/stage=0", 30, "class sport: da, stage 1 of 30"),
        ("class=-1/svm", 0, "class -1: svm"),
        ("class=a/tsvm/tsvm/stage=2", 18, "class a/tsvm: tsvm, stage 3 of 18"),
        ("class=\n/svm", 0, "class \n: svm"),
        ("cuts3vm/start=1/round=3/planes=4", 0, "cuts3vm, start 2, round 4, 4 planes"),
        ("fold=0/class=a/cccp_tsvm/round=2", 0, "class a: calibration, fold 1: cccp_tsvm, round 3"),
        ("class=a/fractions/fold=2/tsvm/stage=3", 18, "class a: class fractions, fit 3: tsvm, stage 4 of 18"),
        ("svm/lambda=1e-05/fold=1/svm", 0, "lambda 1e-05, fold 2: svm"),
        ("mixture/weight=0.05/fold=1/mixture", 0, "unlabeled documents with weight 0.05, fold 2: naive Bayes"),
        ("mixture", 0, "naive Bayes"),
        ("graph", 0, "label spreading"),
        ("candidate/graph", 0, "comparison of methods: label spreading"),
        ("candidate/ridge", 0, "comparison of methods: kernel ridge regression"),
        ("ridge", 0, "kernel ridge regression"),
        ("ramp_svm/subset", 0, "ramp_svm, on a subset"),
        ("ctsvm/feasible", 0, "ctsvm, finding a feasible point"),
        ("supervised/fold=1/svm", 0, "class fractions, prediction: svm"),
        ("mixture/all/mixture", 0, "naive Bayes"),
        ("class=sport/addend=2/tsvm/stage=3", 18, "class sport: addend 2 of the model: tsvm, stage 4 of 18"),
        ("supervised/svm", 0, "class fractions, prediction: svm"),
        ("of no known form", 0, "of no known form"),
    ],
)
def test_a_path_becomes_words(path: str, stages: int, words: str) -> None:
    assert phase_in_words(TracePoint(path, 0, 0.0, 0.0, 0.0, 0.0, stages)) == words


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", OFFERED)
def test_no_phase_of_a_training_is_left_as_a_path(monkeypatch: pytest.MonkeyPatch, name: str, n_classes: int) -> None:
    monkeypatch.setattr(watch, "SECONDS", 0.0)
    points: list[TracePoint] = []

    def observe(point: TracePoint, /) -> bool:
        points.append(point)
        return False

    data = small(5, n=60, labeled=15, gap=0.25)
    class_indices = data.class_indices if n_classes == 2 else np.where(data.class_indices < 0, -1, np.arange(60) % 3).astype(np.int32)
    options = {} if name == "auto" else {"probabilities": True}
    train(TrainingTask(data.rows, class_indices, list(range(n_classes)), name, options), TrainingContext(observer=observe))
    words = {phase_in_words(point) for point in points}
    assert [phase for phase in words if "/" in phase or "=" in phase] == []
    stages = [phase for phase in words if "stage" in phase]
    assert all(" of " in phase.split("stage")[1] for phase in stages)
    assert stages or name not in ("auto", "tsvm", "da")
