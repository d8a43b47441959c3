"""The files of a dataset that say what is known of its documents: labels, votes, weights.

Of documents that may have several labels these are the classes that apply to each or do not, and whether all are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.label_sets import APPLIES, EXCLUDED, LabelSets
from core.errors import MAX_FAULTS, Fault, did_you_mean, refuse
from storage.process.settings import Settings
from storage.records import Label, LabelKind
from storage.repositories.datasets.files.ids import Ids
from storage.repositories.datasets.files.npy import (
    INDPTR,
    WITHOUT_LABEL,
    DrawnWriter,
    NpyWriter,
    OptionalColumn,
    RaggedWriter,
    chunks,
    open_array,
)
from storage.repositories.datasets.files.votes import VotesWriter, vote_faults
from storage.repositories.datasets.labels import Batch, Classes, LabelLists, list_faults

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


_MIXED = "in one dataset all documents have label, or all labels; for one label write labels with one element"
_UNKNOWN = "; correct it, or label a document with it"
KNOWN = ("labels", "label_sets.", "votes.", "weights", "drawn")
"""Beginnings of the names of these files, by content."""


class Labels(NamedTuple):
    """What is known of the documents of a dataset, as its manifest has it."""

    label_kind: LabelKind
    n_labeled: int
    classes: list[tuple[Label, int]]
    voters: dict[str, int]
    voted: list[Label]
    drawn: dict[str, int]


class LabelWriters:
    """Writers of these files, document after document. Memory does not grow with the documents."""

    def __init__(self, folder: Path, settings: Settings, stack: ExitStack) -> None:
        """The stack closes the files."""
        self._folder = folder
        self._settings = settings
        self._classes = Classes(settings.max_classes)
        self._kind: LabelKind | None = None
        self._labels = stack.enter_context(NpyWriter(folder / "codes.npy", "<i4"))
        self._drawn = DrawnWriter(folder, stack)
        self._sets = LabelSetsWriter(folder, stack)
        self._votes = VotesWriter(folder, settings.max_voters, stack)
        self._weights = OptionalColumn(folder / "weights.npy", "<f8", 1.0, stack)

    @property
    def n_bytes(self) -> int:
        """Bytes to store so far."""
        files = (self._labels, self._drawn, self._sets, self._votes, self._weights)
        return sum(file.n_bytes for file in files)

    def append(self, batch: Batch) -> None:
        """Append what a batch says, which is valid; raises LimitExceeded."""
        length = batch.rows.n_rows
        self._kind = self._kind or _kind_of(batch)
        self._labels.append(self._classes.encode(batch.labels))
        self._sets.append(batch.label_lists, self._classes, length)
        self._votes.append(batch.votes, self._classes, length)
        self._drawn.append(batch.drawn, length)
        self._weights.append(batch.weights, length)

    def faults(self, batch: Batch) -> list[tuple[int, str, str]]:
        """Faults of a batch: the places of the documents, the fields and the reasons."""
        faults = [(place, "label", detail) for place, detail in self._classes.faults(batch.labels, MAX_FAULTS)]
        faults += islice(self._mixed(batch), MAX_FAULTS)
        if batch.label_lists is not None:
            faults += self._classes.faults_of_lists(batch.label_lists, MAX_FAULTS)
            faults += islice(
                list_faults(batch.label_lists, batch.labels, self._settings.max_document_labels), MAX_FAULTS
            )
        if batch.votes is not None:
            given = [label for labels in chain(*(batch.label_lists or ())) for label in labels or ()]
            label_type = self._classes.label_type or _type_in([*batch.labels, *given])
            faults += islice(vote_faults(batch.votes, label_type), MAX_FAULTS)
        if batch.weights is not None:
            odd = np.flatnonzero(~(np.isfinite(batch.weights) & (batch.weights >= 0)))[:MAX_FAULTS].tolist()
            faults += [
                (place, "weight", f"must be a number of at least 0, not {batch.weights[place]:g}") for place in odd
            ]
        known = () if batch.drawn is None else np.flatnonzero(batch.drawn).tolist()
        lists, unlabeled = batch.label_lists, (place for place in known if batch.labels[place] is None)
        missing = (place for place in unlabeled if lists is None or lists.applied[place] is None)
        faults += [(place, "drawn", WITHOUT_LABEL) for place in missing]
        return faults

    def _mixed(self, batch: Batch) -> Iterator[tuple[int, str, str]]:
        """Labels of the other kind than those so far."""
        kind = self._kind or _kind_of(batch)
        nothing = [None] * len(batch.labels)
        lists = list(zip(*(batch.label_lists or (nothing, nothing)), strict=True))
        for place, (label, each) in enumerate(zip(batch.labels, lists, strict=True)):
            if kind == "several" and label is not None and each == (None, None):
                yield place, "label", _MIXED
            if kind == "single" and each != (None, None) and label is None:
                yield place, "labels", _MIXED

    def finish(self, ids: Ids) -> tuple[Labels, dict[str, Path]]:
        """What the files say, and the finished files by content.

        Raises InvalidDocuments for votes for a class that nothing else knows of.
        """
        classes, final = self._classes.sorted()
        voted = sorted(final[[*self._votes.classes]].tolist()) if self._votes.classes else []
        among = np.full(len(classes) + 1, -1, np.int32)
        among[voted] = np.arange(len(voted))
        counts = np.zeros(len(classes) + 1, np.int64)
        paths = self._sets.finish(final)
        if self._kind == "several":
            sets = label_sets_in({name: open_array(path) for name, path in paths.items()}, classes)
            counts[1:], n_labeled = sets.counts, int(np.count_nonzero(sets.complete))
        else:
            with NpyWriter(self._folder / "labels.npy", "<i4") as labels:
                for class_indices in chunks(open_array(self._labels.finish())):
                    renumbered = final[class_indices]
                    counts += np.bincount(renumbered + 1, minlength=len(counts))
                    labels.append(renumbered)
                paths["labels"], n_labeled = labels.finish(), int(counts[1:].sum())
        paths |= self._votes.finish(among[final])
        optional = {"drawn": self._drawn.finish(), "weights": self._weights.finish()}
        paths |= {name: path for name, path in optional.items() if path is not None}
        self._refuse_unknown(classes, counts[1:], final, ids)
        named = list(zip(classes, counts[1:].tolist(), strict=True))
        known = Labels(
            self._kind or "single",
            n_labeled,
            named,
            self._votes.voters,
            [classes[class_index] for class_index in voted],
            self._drawn.counts,
        )
        return known, paths

    def _refuse_unknown(
        self, classes: Sequence[Label], counts: NDArray[np.int64], final: NDArray[np.int32], ids: Ids
    ) -> None:
        """Raise InvalidDocuments for classes that one voter alone names, beside labels that have several others. Where
        all labels are of one class, somebody must name the others: only what looks like this class is refused.
        """
        if not counts.any():
            return
        lonely = {int(final[class_index]): each for class_index, each in self._votes.lonely().items()}
        unknown = {index: each for index, each in lonely.items() if not counts[index]}
        names = ids.by_position(position for _, position in unknown.values())
        labeled = [str(classes[index]) for index in np.flatnonzero(counts).tolist()]
        likely = {index: did_you_mean(str(classes[index]), labeled) for index in unknown}
        refuse(
            Fault(
                position if names[position] == str(position) else names[position],
                "votes",
                f"{voter!r} votes for {classes[index]!r}, which neither a label nor another voter names"
                f"{likely[index]}{_UNKNOWN}",
            )
            for index, (voter, position) in sorted(unknown.items())
            if len(labeled) > 1 or likely[index]
        )


def _kind_of(batch: Batch) -> LabelKind | None:
    """The kind of the labels of a batch, None of one without any."""
    if batch.label_lists is not None:
        return "several"
    return None if _type_in(batch.labels) is None else "single"


def _type_in(labels: Sequence[Label | None]) -> type | None:
    return next((type(label) for label in labels if label is not None), None)
