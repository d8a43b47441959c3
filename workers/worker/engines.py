"""The engine of a training: the cheapest that the memory of the worker allows."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from core.engine import EngineName
from core.memory_estimate import RowsSize, cheapest_engine, table_bytes, training_bytes
from core.options.base import TrainingSize
from core.options.text import TextOptions
from core.registry import find_algorithm
from storage.errors import JobTooLarge
from storage.records import JobRequest
from storage.store import Store, staging_folder
from workers.cluster.address import ClusterAddress
from workers.worker.inputs import TextEngine, text_remedy

if TYPE_CHECKING:
    from core.engine.passes import Engine

_LOCAL: tuple[EngineName, ...] = ("memory", "mapped")
_HELD = "{} holds all documents in memory, where auto and linear methods such as tsvm read them from files"


class ChosenEngine(NamedTuple):
    """The engine of a training."""

    name: EngineName
    resident_bytes: int
    """bytes of memory that are left for the page cache"""
    cluster: ClusterAddress | None = None

    @contextmanager
    def opened(self, store: Store, prefix: str) -> Iterator["Engine"]:
        """The engine, for as long as the block is entered: the training keeps its copies of the rows in a staging
        folder of the store; a cluster reads its rows below ``prefix`` in the store. Raises ClusterUnavailable.
        """
        # imported here, since Numba takes a second to load, and only a training needs it
        from core.engine.passes import Engine
        from workers.worker.scratch import ScratchFiles

        if self.name == "memory":
            yield Engine()
            return
        with ExitStack() as stack:
            space = ScratchFiles(stack.enter_context(staging_folder(store)))
            if self.cluster is None:
                yield Engine("mapped", space, self.resident_bytes)
                return
            from workers.cluster.engine import ClusterEngine, ClusterStore, connected

            client = stack.enter_context(connected(self.cluster.url, self.cluster.files))
            yield ClusterEngine(client, space, ClusterStore(store, self.cluster.store_url, prefix))


class EngineChoice(NamedTuple):
    """The facts that decide the engine of a job, beside its size."""

    request: JobRequest
    n_labeled: int
    n_classes: int
    n_threads: int
    most_bytes: int
    """bytes of memory that a job may have"""
    engine: Literal["auto"] | EngineName
    """the setting"""
    cluster: ClusterAddress | None = None
    several: bool = False
    """whether documents may have several labels"""

    def of_text(self, size: RowsSize) -> TextEngine:
        """The engine that finds the terms of texts of this size, whatever the algorithm. Raises as ``of``."""
        bound: dict[EngineName, int] = {"memory": size.making_bytes, "mapped": size.least_making_bytes}
        here = "mapped" if self.engine == "cluster" else self.engine
        needed = {each: n_bytes for each, n_bytes in bound.items() if here in ("auto", each)}
        fit = [each for each, n_bytes in needed.items() if n_bytes <= self.most_bytes]
        if not fit:
            name, least = min(needed.items(), key=itemgetter(1))
            raise JobTooLarge(least, self.most_bytes, text_remedy(TextOptions.parse(self.request.text or {}), name))
        tables = table_bytes(size, self.most_bytes) if fit[-1] != "memory" else 0
        return TextEngine(fit[0], tables)

    def _is_shared(self, name: EngineName, size: RowsSize, left: int) -> bool:
        """Whether a cluster does the work of this engine: mapped rows beyond the page cache are read from the disk in
        every pass.
        """
        return (
            self.cluster is not None
            and name == "mapped"
            and (self.engine == "cluster" or (self.engine == "auto" and 8 * size.n_nonzeros > left))
        )

    def check(self, size: RowsSize) -> None:
        """Raises JobTooLarge for a training of this size that no engine can run."""
        self.of(size)

    def of(self, size: RowsSize) -> ChosenEngine:
        """The engine of a training of this size.

        Raises JobTooLarge for one that the system would kill halfway for want of memory.
        """
        options, most = find_algorithm(self.request.algorithm).options.parse(self.request.options), self.most_bytes
        training = TrainingSize(
            size.n_rows,
            self.n_labeled,
            size.n_nonzeros,
            size.n_features,
            self.n_classes,
            size.n_parts,
            self.n_threads,
            self.several,
        )
        offered = _LOCAL if self.engine == "auto" else (self.engine,)
        offered = ("memory",) if options.holds_rows else offered
        name = cheapest_engine(options, training, most, offered)
        if name is None:
            remedy, held = (
                options.memory_remedy(training),
                _HELD.format(self.request.algorithm) if options.holds_rows else "",
            )
            needed = min(training_bytes(options, training, each) for each in offered)
            raise JobTooLarge(needed, most, f"{remedy}; {held}" if held else remedy)
        left = most - training_bytes(options, training, name)
        name = "cluster" if self._is_shared(name, size, left) else name
        return ChosenEngine(name, left, self.cluster if name == "cluster" else None)
