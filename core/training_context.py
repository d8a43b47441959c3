"""The surroundings of a training, and the state that all parts of it share."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

from core.documents.rows import SparseRows
from core.engine.engine import Engine, MemoryEngine
from core.engine.runner import PassCounter, Scheduler
from core.progress import WHOLE, Observer, Span
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
