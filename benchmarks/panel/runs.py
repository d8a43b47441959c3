"""Runs of the panel: ``auto``, its references and its peers on one task."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.panel import draws
from benchmarks.panel.automatic import answered, automatic, told
from benchmarks.panel.draws import Labels
from benchmarks.panel.peers import PEERS, peer_score
from benchmarks.panel.references import supervised, told_fractions
from benchmarks.panel.results import Results, code_digest, digest
from benchmarks.panel.score import Score, Setting
from benchmarks.panel.sets import documents
from benchmarks.panel.tasks import ROUNDS, Task, labels_of
from core.documents.drawn import Draw

AUTO, SVM, TSVM = "auto", "SVM", "TSVM, true fractions"
SURPLUS, AS_MANY = "auto, surplus thrown away", "auto, as many even labels"
WITH_PEERS = ("even", "random")
"""draws on which peers are measured"""

_HERE = "benchmarks/panel"


class Run(NamedTuple):
    """A task and its measurements."""

    task: Task
    counts: list[int]
    """labels of each class at the end, as given"""
    scores: dict[str, Score]
    rounds: list[float]
    """errors of ``auto`` before the first round of labels and after each; empty of a draw without rounds"""


def run_of(task: Task, results: Results, threads: int = 1) -> Run:
    """All measures of a task; raises OutOfTime."""
    bench = Bench(task, results, threads)
    labels, rounds = labels_of(task), list[float]()
    for _ in range(ROUNDS if task.strategy else 0):
        found = bench.automatic(labels)
        rounds.append(found["score"]["error"])
        suggestions = {position: Draw(draw) for position, draw in found["suggestions"][task.strategy]}
        labels = labels.followed_by(answered(suggestions, documents(task.name).class_indices))
    n_classes = len(documents(task.name).classes)
    as_many = draws.even(documents(task.name).class_indices, round(len(labels.told) / n_classes), task.seed)
    scores = {
        AUTO: bench.auto(labels),
        SVM: bench.supervised(labels),
        TSVM: bench.score("tsvm", told_fractions, labels),
        SURPLUS: bench.auto(draws.evened(labels, n_classes)),
        AS_MANY: bench.auto(as_many),
    }
    if task.draw in WITH_PEERS:
        scores |= {peer: bench.peer(peer, labels) for peer in PEERS}
    return Run(task, labels.counts(n_classes).tolist(), scores, [*rounds, scores[AUTO].error] if rounds else [])


class Bench(NamedTuple):
    """Methods on labels of a task, each result kept."""

    task: Task
    results: Results
    threads: int

    def auto(self, labels: Labels) -> Score:
        """The score of ``auto``."""
        return Score(**self.automatic(labels)["score"])

    def automatic(self, labels: Labels) -> dict[str, Any]:
        """The score of ``auto`` and its suggestions."""
        basis = code_digest("core", f"{_HERE}/automatic.py")
        return self._kept("auto", basis, labels, automatic)

    def told(self, labels: Labels, fractions: NDArray[np.float64]) -> Score:
        """The score of ``auto`` that is told class fractions, shape (n_classes,)."""
        basis = code_digest("core", f"{_HERE}/automatic.py")
        method = f"auto-{digest(fractions.tobytes())}"
        return Score(**self._kept(method, basis, labels, lambda setting: told(setting, fractions)._asdict()))

    def supervised(self, labels: Labels) -> Score:
        """The score of the tuned supervised SVM."""
        return self.score("svm", supervised, labels)

    def score(self, name: str, method: Callable[[Setting], Score], labels: Labels) -> Score:
        """The score of a reference, which does not rest on how ``auto`` selects."""
        basis = code_digest("core", f"{_HERE}/references.py", without="core/selection")
        return Score(**self._kept(name, basis, labels, lambda setting: method(setting)._asdict()))

    def peer(self, name: str, labels: Labels) -> Score:
        """The score of a peer, which rests on nothing of ours."""
        return Score(
            **self._kept(
                name, code_digest(f"{_HERE}/peers.py"), labels, lambda setting: peer_score(name, setting)._asdict()
            )
        )

    def _kept(
        self, method: str, basis: str, labels: Labels, compute: Callable[[Setting], dict[str, Any]]
    ) -> dict[str, Any]:
        sorted_labels = labels.taken(np.argsort(labels.positions))
        of_labels = digest(*(each.tobytes() for each in sorted_labels), str(self.task.seed))
        setting = Setting(self.task.name, sorted_labels, self.task.seed, self.threads)
        return self.results.get(f"{self.task.name}/{method}-{of_labels}", basis, lambda: compute(setting))
