"""``auto`` on labels, without any option; and labels by active learning, as the service suggests them:
app.predictions.suggestion without a store, from the same parts and with its defaults.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.predictions.schemas import Strategy, SuggestBody
from benchmarks.panel.draws import Labels
from benchmarks.panel.score import Score, Setting
from benchmarks.panel.tasks import A_ROUND, STRATEGIES
from core.documents.drawn import Draw
from core.documents.rows import SparseRows
from core.evaluation.active_learning import (
    POOL,
    BalancedMargins,
    comparable,
    has_few_labels,
    interleaved,
    random_positions,
    representatives,
    top_two,
)
from core.train import Training, TrainingContext, TrainingTask, train

Positions = NDArray[np.int64]


def suggested(training: Training, rows: SparseRows, strategy: Strategy, n: int, seed: int) -> dict[int, Draw]:
    """Positions of ``n`` documents to label, in order, and how each was drawn.

    A model that knows too little suggests random documents.
    """
    assert training.confidence is not None
    body = SuggestBody("", n, strategy, seed=seed)
    known = training.confidence
    ignorant = known.level == "none" or has_few_labels(known.total, len(training.model.classes))
    share = 1.0 if ignorant or strategy == "random" else body.random
    random = random_positions(training.unlabeled, n, share, seed)
    chosen = _chosen(training, rows, random, strategy, n - len(random))
    draws = dict.fromkeys(random.tolist(), Draw.RANDOM)
    return {position: draws.get(position, Draw.CHOSEN) for position in interleaved(random, chosen).tolist()}


def answered(suggestions: dict[int, Draw], truth: NDArray[np.int32]) -> Labels:
    """Suggested documents with their true labels."""
    labels = Labels.of(np.array(list(suggestions), np.int64), truth)
    return labels._replace(drawn=np.array(list(suggestions.values()), np.int8))


def _chosen(training: Training, rows: SparseRows, random: Positions, strategy: Strategy, n: int) -> Positions:
    """Positions of the documents that the model chooses, none of the random ones among them."""
    if not n:
        return np.zeros(0, np.int64)
    values = training.scores if training.probabilities is None else training.probabilities
    offered = ~np.isin(training.unlabeled, random)
    margins = BalancedMargins(n * POOL if strategy == "diverse" else n)
    two = top_two(values[offered])
    margins.add(training.unlabeled[offered], two.first, two.margins)
    pool = margins.balanced
    compared = pool.taken(comparable(rows.indptr, pool.positions))
    if strategy == "uncertain" or len(compared.positions) <= n:
        return pool.positions[:n]
    return compared.positions[representatives(rows.taken(compared.positions), n, compared.classes)]


def told(setting: Setting, fractions: NDArray[np.float64]) -> Score:
    """The score of ``auto`` that is told class fractions, shape (n_classes,)."""
    options = {"class_fractions": {str(each): share for each, share in enumerate(fractions.tolist())}}
    return _trained(setting, setting.task("auto", options))[1]


def automatic(setting: Setting) -> dict[str, Any]:
    """The score of ``auto``, and for each strategy the documents of a round with the draw of each."""
    task = setting.task("auto", {})
    training, score = _trained(setting, task)
    score = score.with_report(training, setting.truth, setting.n_classes)
    rounds = {strategy: suggested(training, task.rows, strategy, A_ROUND, setting.seed) for strategy in STRATEGIES}
    suggestions = {
        strategy: [[position, int(draw)] for position, draw in found.items()] for strategy, found in rounds.items()
    }
    return {"score": score._asdict(), "suggestions": suggestions}


def _trained(setting: Setting, task: TrainingTask) -> tuple[Training, Score]:
    """A training of ``auto`` and its score."""
    start = time.perf_counter()
    training = train(task, TrainingContext(threads=setting.threads))
    seconds = time.perf_counter() - start
    answer = training.model.labels_of(training.scores, training.probabilities)
    return training, Score.of(answer, setting.truth, setting.n_classes, seconds)
