"""Labels of documents that may have several: the classes that apply to each or do not, and whether all are known."""

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.label_sets import APPLIES, EXCLUDED, LabelSets
from storage.records import Label
from storage.repositories.datasets.files.npy import INDPTR, OptionalColumn, RaggedWriter
from storage.repositories.datasets.labels import Classes, LabelLists

NAME = "label_sets"
"""Beginning of the names of the files, by content."""
_CLASSES, _VALUES, _COMPLETE = f"{NAME}.indices", f"{NAME}.values", f"{NAME}.complete"


class LabelSetsWriter:
    """Writer of the labels of a dataset whose documents may have several, in order."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """The stack closes the files."""
        self._known = RaggedWriter(folder, NAME, {"indices": "<i4", "values": "|i1"}, stack)
        self._complete = OptionalColumn(folder / f"{_COMPLETE}.npy", "|b1", False, stack)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far."""
        return self._known.n_bytes + self._complete.n_bytes

    def append(self, lists: LabelLists | None, classes: Classes, length: int) -> None:
        """Append the labels of the next ``length`` documents, which are valid; None where none has any.

        Raises LimitExceeded for classes.
        """
        if lists is None:
            self._known.append(None, {}, length)
            self._complete.append(None, length)
            return
        rows = [(each or (), others or ()) for each, others in zip(*lists, strict=True)]
        values = [([APPLIES] * len(each), [EXCLUDED] * len(others)) for each, others in rows]
        flat = [*chain.from_iterable(chain.from_iterable(rows))]
        columns: dict[str, NDArray[Any]] = {
            "indices": classes.encode(flat),
            "values": np.fromiter(chain.from_iterable(chain.from_iterable(values)), np.int8, len(flat)),
        }
        lengths = np.fromiter((len(each) + len(others) for each, others in rows), np.int64, length)
        self._known.append(lengths, columns, length)
        self._complete.append(np.fromiter((each is not None for each in lists.applied), bool, length), length)

    def add(self, sets: LabelSets) -> None:
        """Append labels whose classes have their final numbers."""
        self._known.append(np.diff(sets.indptr), {"indices": sets.indices, "values": sets.values}, sets.n_rows)
        self._complete.append(sets.complete, sets.n_rows)

    def finish(self, final: NDArray[np.int32]) -> dict[str, Path]:
        """The finished files by content, none of documents with one label at most; ``final`` are the numbers of the
        classes.
        """
        complete = self._complete.finish()
        known = self._known.finish({"indices": final}, ["indices"])
        return known if complete is None else known | {_COMPLETE: complete}


def label_sets_in(arrays: Mapping[str, NDArray[Any]], classes: list[Label]) -> LabelSets:
    """The labels of arrays by content."""
    indptr = arrays[f"{NAME}.{INDPTR}"]
    complete = arrays.get(_COMPLETE, np.zeros(len(indptr) - 1, bool))
    return LabelSets(classes, indptr, arrays[_CLASSES], arrays[_VALUES], complete)
