"""The interface of engines, which hold the rows of a training and answer requests over them.

All engines cut rows into the same parts (core.engine.parts) and add the sums of parts in the same order, so that all of
them answer with the same bits. Rows that are not in the memory of this process are in its address space all the same,
for what reads few of them, or is no pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Protocol

from core.documents.rows import MEMORY, Space, SparseRows
from core.engine import EngineName
from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores, Vector
from core.progress import Checkpoint


class RowOperator(Protocol):
    """What an engine answers over the rows of one matrix; to be closed.

    ``alone``: by the calling thread, while others are at something else.
    """

    n_threads: int
    """number of threads that ``side_by_side`` uses"""

    def product(self, request: Product, alone: bool = False) -> Vector:
        """``Xᵀ(weights ∘ X p)`` of one right-hand side."""

    def products(self, requests: Sequence[Product]) -> list[Vector]:
        """Products of several right-hand sides, in as few passes as they fit into."""

    def scores(self, request: Scores, alone: bool = False) -> None:
        """``X p`` on some rows."""

    def adjoint(self, request: Adjoint, alone: bool = False) -> None:
        """``sums += Xᵀ weights``."""

    def adjoints(self, requests: Sequence[Adjoint], alone: bool = False) -> None:
        """Adjoints of several weights, each added to sums of its own."""

    def cuts(self, requests: Sequence[Cut]) -> list[Vector]:
        """Scores, and the sum of the rows that fall short of the margin, of each."""

    def is_light(self, request: Product) -> bool:
        """Whether a product costs less alone than beside others."""

    def side_by_side(self, works: Iterable[Callable[[], None]], checkpoint: Checkpoint | None = None) -> None:
        """Call all of these, as many at once as there are threads here."""

    def close(self) -> None:
        """End the threads, and free everything that the engine holds of these rows."""


class Engine(ABC):
    """The place of the rows of one training, and their reader."""

    name: ClassVar[EngineName]

    def __init__(self, space: Space) -> None:
        self.space = space
        """where the training's own copies of the rows lie"""

    @abstractmethod
    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> RowOperator:
        """The operator of these rows, which lie in the space.

        ``checkpoint`` is called between slices, what it raises ends a pass.
        """


class MemoryEngine(Engine):
    """All rows in the memory of this process."""

    name = "memory"

    def __init__(self) -> None:
        super().__init__(MEMORY)

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Passes:
        """See Engine."""
        return Passes(rows, threads, checkpoint)


class MappedEngine(Engine):
    """Rows in files that are mapped, read part by part through the page cache. A pass reads the next parts ahead.

    ``resident_bytes`` of the rows may stay in the page cache from one pass to the next; None: as many as the system
    likes. A reader in circles finds none of its rows in a cache that is a little too small, since the oldest leave
    first. So the first rows stay, and the others leave once they are read.
    """

    name = "mapped"

    def __init__(self, space: Space, resident_bytes: int | None = None) -> None:
        super().__init__(space)
        self._resident_bytes = resident_bytes

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Passes:
        """See Engine."""
        return Passes(rows, threads, checkpoint, self._resident_bytes)
