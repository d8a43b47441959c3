"""The engine of a training, which holds its rows and answers requests over them.

All engines cut rows into the same parts (core.engine.parts) and add the sums of parts in the same order, so that all of
them answer with the same bits. Rows that are not in the memory of this process are in its address space all the same,
for what reads few of them, or is no pass.
"""

from core.documents.rows import MEMORY, Space, SparseRows
from core.engine import EngineName
from core.engine.passes import Passes
from core.progress import Checkpoint


class Engine:
    """The place of the rows of one training, and their reader: here in the memory of this process, or in files that are
    mapped, and read part by part through the page cache. Of those, a pass reads the next parts ahead.

    ``space`` is where the training's own copies of the rows lie. ``resident_bytes`` of mapped rows may stay in the page
    cache from one pass to the next; None: as many as the system likes. A reader in circles finds none of its rows in a
    cache that is a little too small, since the oldest leave first. So the first rows stay, and the others leave once
    they are read.
    """

    def __init__(self, name: EngineName = "memory", space: Space = MEMORY, resident_bytes: int | None = None) -> None:
        self.name, self.space, self._resident_bytes = name, space, resident_bytes

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Passes:
        """The passes over these rows, which lie in the space; to be closed.

        ``checkpoint`` is called between slices, what it raises ends a pass.
        """
        return Passes(rows, threads, checkpoint, self._resident_bytes)
