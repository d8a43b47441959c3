"""Phases are reported in words, whatever a training runs (``test_observer.py``) and whatever its classes are called."""

import pytest

from core.phases import phase_in_words
from core.progress import CALIBRATION, TOGETHER, Phase, TracePoint

TSVM = Phase("tsvm")


@pytest.mark.parametrize(
    ("phase", "stages", "path", "words"),
    [
        (Phase(), 0, "", "starting"),
        (Phase("terms"), 0, "terms", "finding the terms of the texts"),
        (Phase("auto"), 0, "auto", "preparing the documents"),
        (Phase("svm"), 0, "svm", "svm"),
        (TSVM.then("svm"), 0, "tsvm/svm", "tsvm, supervised solution"),
        (TSVM.then("stage", 17), 18, "tsvm/stage=17", "tsvm, stage 18 of 18"),
        (TSVM.then("stage", 17), 0, "tsvm/stage=17", "tsvm, stage 18"),
        (Phase("svm", label=-1), 0, "class=-1/svm", "class -1: svm"),
        (Phase("svm", label=""), 0, "class=/svm", "class : svm"),
        (Phase("svm", label="a/tsvm"), 0, "class=a/tsvm/svm", "class a/tsvm: svm"),
        (
            Phase("cuts3vm").then("start", 1).then("round", 3).then("planes", 4),
            0,
            "cuts3vm/start=1/round=3/planes=4",
            "cuts3vm, start 2, round 4, 4 planes",
        ),
        (
            Phase("cccp_tsvm", label="a").to(CALIBRATION, fold=0).then("round", 2),
            0,
            "fold=0/class=a/cccp_tsvm/round=2",
            "class a: calibration, fold 1: cccp_tsvm, round 3",
        ),
        (
            TSVM._replace(label="a").to("candidate", fold=2).then("stage", 3),
            18,
            "class=a/candidate/fold=2/tsvm/stage=3",
            "class a: comparison of methods, fold 3: tsvm, stage 4 of 18",
        ),
        (Phase("svm").to("svm/lambda", 1e-5, fold=1), 0, "svm/lambda=1e-05/fold=1/svm", "lambda 1e-05, fold 2: svm"),
        (
            Phase("naive_bayes").to("naive_bayes/weight", 0.05, fold=1),
            0,
            "naive_bayes/weight=0.05/fold=1/naive_bayes",
            "unlabeled documents with weight 0.05, fold 2: naive Bayes",
        ),
        (Phase("naive_bayes"), 0, "naive_bayes", "naive Bayes"),
        (Phase("label_spreading"), 0, "label_spreading", "label spreading"),
        (Phase("kernel_ridge"), 0, "kernel_ridge", "kernel ridge regression"),
        (
            Phase("kernel_ridge").to("candidate"),
            0,
            "candidate/kernel_ridge",
            "comparison of methods: kernel ridge regression",
        ),
        (Phase("kernel_svm").to("tuning"), 0, "tuning/kernel_svm", "choice of C and gamma: kernel_svm"),
        (
            Phase("kernel_svm").to("tuning", fold=4),
            0,
            "tuning/fold=4/kernel_svm",
            "choice of C and gamma, fold 5: kernel_svm",
        ),
        (Phase("ramp_svm").then("subset"), 0, "ramp_svm/subset", "ramp_svm, on a subset"),
        (Phase("ctsvm").then("feasible"), 0, "ctsvm/feasible", "ctsvm, finding a feasible point"),
        (Phase("svm").to("supervised"), 0, "supervised/svm", "class fractions, prediction: svm"),
        (Phase("svm").to("supervised", fold=1), 0, "supervised/fold=1/svm", "class fractions, prediction: svm"),
        (
            TSVM._replace(label="sport").to("addend", 2).then("stage", 3),
            18,
            "class=sport/addend=2/tsvm/stage=3",
            "class sport: addend 2 of the model: tsvm, stage 4 of 18",
        ),
        (
            TSVM._replace(label="a", part="vector").then("stage", 3),
            18,
            "part=vector/class=a/tsvm/stage=3",
            "vector alone: class a: tsvm, stage 4 of 18",
        ),
        (Phase("svm", part=TOGETHER), 0, "part=together/svm", "all parts: svm"),
    ],
)
def test_a_phase_becomes_a_path_and_words(phase: Phase, stages: int, path: str, words: str) -> None:
    assert str(phase) == path
    assert phase_in_words(TracePoint(phase, 0, 0.0, 0.0, 0.0, 0.0, stages)) == words
