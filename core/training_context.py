"""The surroundings of a training, the state that all parts of it share, and its outcome."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.engine.engine import Engine, MemoryEngine
from core.engine.runner import PassCounter, Scheduler
from core.errors import Fault
from core.models.model import Model
from core.problem.result import Status
from core.progress import WHOLE, Observer, Span, TracePoint
from core.validation.confidence import Confidence
from core.watch import Watch


@dataclass(frozen=True)
class TrainingContext:
    """The surroundings of a training: observer, threads, limits and engine."""

    observer: Observer | None = None
    """callback for progress; a true answer stops the training"""
    span: Span = WHOLE
    """stretch of the observed work that this training is"""
    began: float | None = None
    """time by ``time.monotonic`` at which the observed work began; None: now"""
    threads: int | None = None
    """number of threads; None: one a core"""
    max_model_bytes: int | None = None
    """most bytes of the documents that a model keeps and of their weights"""
    engine: Engine = field(default_factory=MemoryEngine)
    """where the rows lie, and what reads them; algorithms that must hold all rows take memory"""


class Run(NamedTuple):
    """State that all parts of one training share."""

    context: TrainingContext
    watch: Watch
    counter: PassCounter

    @classmethod
    def of(cls, context: TrainingContext) -> Self:
        """The state at the beginning."""
        return cls(context, Watch(context.observer, context.span, context.began), PassCounter())

    def scheduler(self, rows: SparseRows) -> Scheduler:
        """A scheduler of solvers over these rows."""
        context = self.context
        most = context.max_model_bytes
        return Scheduler(
            rows,
            engine=context.engine,
            threads=context.threads,
            max_model_bytes=most,
            watch=self.watch,
            counter=self.counter,
        )


@dataclass(frozen=True)
class Training:
    """A trained model, and its predictions for the unlabeled documents."""

    model: Model
    unlabeled: NDArray[np.int64]
    """shape (n_unlabeled,), ascending: positions of the documents that were unlabeled"""
    scores: NDArray[np.float64]
    """shape (n_unlabeled, 1 for two classes or n_classes): scores of these documents"""
    probabilities: NDArray[np.float64] | None
    """shape (n_unlabeled, n_classes), or None where the model was not calibrated"""
    objective: float
    """objective of the two-class problem, or the sum over those of one-vs-rest"""
    status: Status
    """least satisfying status of all solvers"""
    warnings: list[str]
    trace: list[TracePoint]
    passes: float
    """passes over the nonzeros, summed over all solves, those for estimates and probabilities included"""
    report: dict[str, Any] | None = None
    """what was estimated and selected, and why, as JSON; of auto also what was tried; None where nothing was to be
    found"""
    range_remedy: str = ""
    """what would have kept its numbers within range, for a training that is not usable"""
    largest: Fault | None = None
    """largest value of all documents, as a fault of its document"""
    held_out: NDArray[np.float64] | None = None
    """shape (n_labeled, n_columns): scores of the labeled documents in their order, each by cross-validation without
    its label; NaN where no fold leaves a document out; None of a training without cross-validation"""
    confidence: Confidence | None = None
    """what these scores show of the model"""
