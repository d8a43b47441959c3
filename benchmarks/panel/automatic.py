"""``auto`` on labels, without any option; and the service's suggestions to label next."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.panel.score import Score, Setting
from benchmarks.panel.suggestions import suggested
from benchmarks.panel.tasks import A_ROUND, STRATEGIES
from core.train import TrainingContext, train


def told(setting: Setting, fractions: NDArray[np.float64]) -> Score:
    """The score of ``auto`` that is told class fractions, shape (n_classes,)."""
    options = {"class_fractions": {str(each): share for each, share in enumerate(fractions.tolist())}}
    start = time.perf_counter()
    training = train(setting.task("auto", options), TrainingContext(threads=setting.threads))
    seconds = time.perf_counter() - start
    answer = training.model.labels_of(training.scores, training.probabilities)
    return Score.of(answer, setting.truth, setting.n_classes, seconds)


def automatic(setting: Setting) -> dict[str, Any]:
    """The score of ``auto``, and for each strategy the documents of a round with the draw of each."""
    task, truth = setting.task("auto", {}), setting.truth
    start = time.perf_counter()
    training = train(task, TrainingContext(threads=setting.threads))
    seconds = time.perf_counter() - start
    answer = training.model.labels_of(training.scores, training.probabilities)
    score = Score.of(answer, truth, setting.n_classes, seconds).with_report(training, truth, setting.n_classes)
    rounds = {strategy: suggested(training, task.rows, strategy, A_ROUND, setting.seed) for strategy in STRATEGIES}
    suggestions = {
        strategy: [[position, int(draw)] for position, draw in found.items()] for strategy, found in rounds.items()
    }
    return {"score": score._asdict(), "suggestions": suggestions}
