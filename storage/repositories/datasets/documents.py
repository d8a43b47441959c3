"""Documents of a sealed dataset, opened for reading."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.documents.kinds import NamedRows, PartKind, PartRows, Rows, RowsOfKind, TextRows
from core.documents.label_sets import APPLIES, EXCLUDED, LabelSets, label_order, places_among
from core.documents.rows import SparseRows
from core.documents.votes import Votes
from core.evaluation.voting import less_than_sure
from storage.errors import LimitExceeded, NotFound
from storage.records import Dataset, Given, Label, LabelKind, labels_in
from storage.repositories.datasets.annotations.answers import Answer
from storage.repositories.datasets.encodings import KeptVectors
from storage.repositories.datasets.files.extra_fields import INDPTR, LINES, StoredFields
from storage.repositories.datasets.files.ids import Ids
from storage.repositories.datasets.files.npy import open_array, open_bytes
from storage.repositories.datasets.files.row_writers import content_of
from storage.repositories.datasets.files.votes import votes_in
from storage.repositories.datasets.label_files import label_sets_in
from storage.repositories.datasets.labels import FEWER_CLASSES, UNLABELED
from storage.store import KeyMissing, Store


class Documents(NamedTuple):
    """Rows and labels of a dataset, memory-mapped: opening costs no more than the verification of the files."""

    rows: Rows
    class_indices: NDArray[np.int32]
    """shape (n_documents,): position in ``classes``, or -1 for an unlabeled document and where ``label_sets`` hold the
    labels"""
    classes: list[Label]
    ids: Ids
    drawn: NDArray[np.int8] | None = None
    """shape (n_documents,): how each label was come by, as core.documents.drawn.Draw; None where nothing is known of
    any"""
    vectors: Callable[[str], KeptVectors] | None = None
    """the vectors that are kept of the texts, by the digest of their encoder; None for documents of no dataset"""
    label_sets: LabelSets | None = None
    """labels of documents that may have several; None where each has one at most"""
    votes: Votes | None = None
    """votes for classes; None where nobody voted"""
    weights: NDArray[np.float64] | None = None
    """shape (n_documents,): weight of each label; None where all are 1"""
    by_voters: NDArray[np.bool_] | None = None
    """shape (n_documents,): labels that voters gave themselves; None where there are none"""

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """shape (n_documents,): whether the label, or all labels, of a document are known."""
        return self.class_indices >= 0 if self.label_sets is None else self.label_sets.complete

    def has(self, class_index: int) -> NDArray[np.bool_]:
        """shape (n_documents,): whether each document is known to be of a class."""
        if self.label_sets is None:
            return np.equal(self.class_indices, class_index)
        return np.equal(self.label_sets.among([self.classes[class_index]]).matrix()[:, 0], APPLIES)

    @property
    def known(self) -> NDArray[np.int64]:
        """Positions of the documents that have a row in the scores of labels left out, ascending: those with a label;
        of several labels those of which any is known that weighs anything.
        """
        sets = self.label_sets
        if sets is None:
            return np.flatnonzero(self.class_indices >= 0)
        some = sets.complete | (np.diff(sets.indptr) > 0)
        return np.flatnonzero(some if self.weights is None else some & (self.weights > 0))

    def given(self, positions: NDArray[np.int64]) -> list[list[Label]]:
        """The labels of the documents at these positions, as lists."""
        if self.label_sets is not None:
            return list(self.label_sets.taken(positions).sets())
        return [[self.classes[place]] if place >= 0 else [] for place in self.class_indices[positions].tolist()]

    @property
    def label_kind(self) -> LabelKind:
        """Whether each document has one label at most."""
        return "single" if self.label_sets is None else "several"


class StoredNames(Sequence[str]):
    """Names of the features of a dataset, by column; decoded when the first is read."""

    def __init__(self, path: Path, count: int) -> None:
        self._lines = open_bytes(path)
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._names[place]

    @cached_property
    def _names(self) -> list[str]:
        return msgspec.json.Decoder(str).decode_lines(self._lines)


def open_documents(store: Store, dataset: Dataset) -> Documents:
    """The documents of a dataset; raises NotFound where its files were deleted, StoreUnavailable where they are
    damaged.
    """
    classes = [label for label, _ in dataset.classes]
    drawn = _array(store, dataset, "drawn") if "drawn" in dataset.files else None
    vectors = partial(KeptVectors, store, dataset.documents)
    label_sets = votes = None
    if dataset.label_kind == "several":
        labels = np.broadcast_to(np.int32(UNLABELED), dataset.n_documents)
        label_sets = label_sets_in(_arrays(store, dataset, "label_sets."), classes)
    else:
        labels = _array(store, dataset, "labels")
    if dataset.voters:
        votes = votes_in(_arrays(store, dataset, "votes."), list(dataset.voters), dataset.voted).among(classes)
    weights = _array(store, dataset, "weights") if "weights" in dataset.files else None
    ids = open_ids(store, dataset)
    return Documents(_rows(store, dataset), labels, classes, ids, drawn, vectors, label_sets, votes, weights)


def open_ids(store: Store, dataset: Dataset) -> Ids:
    """The ids of the documents alone; raises as ``open_documents``."""
    return Ids(_path(store, dataset, "ids") if "ids" in dataset.files else None, dataset.n_documents)


def open_fields(store: Store, dataset: Dataset) -> StoredFields:
    """The extra fields of the documents alone; raises as ``open_documents``."""
    if not dataset.fields:
        return StoredFields([], None)
    return StoredFields(dataset.fields, TextRows(_array(store, dataset, INDPTR), _array(store, dataset, LINES)))


def _rows(store: Store, dataset: Dataset) -> Rows:
    if dataset.kind == "parts":
        return PartRows(
            {
                part.name: _part(store, dataset, part.kind, part.n_features, partial(content_of, part.name))
                for part in dataset.parts
            }
        )
    return _part(store, dataset, dataset.kind, dataset.n_features, str)


def _part(
    store: Store, dataset: Dataset, kind: PartKind, n_features: int | None, name: Callable[[str], str]
) -> RowsOfKind:
    """The rows of a part; ``name`` gives the names of its files by content."""
    indptr = _array(store, dataset, name("indptr"))
    if kind == "text":
        return TextRows(indptr, _array(store, dataset, name("text")))
    rows = SparseRows(
        indptr, _array(store, dataset, name("indices")), _array(store, dataset, name("values")), n_features or 0
    )
    if kind == "features":
        return NamedRows(rows, StoredNames(_path(store, dataset, name("names")), rows.n_features))
    return rows


def _path(store: Store, dataset: Dataset, name: str) -> Path:
    try:
        return store.local(dataset.files[name])
    except KeyMissing:
        raise NotFound("dataset", dataset.id) from None


def _arrays(store: Store, dataset: Dataset, beginning: str) -> dict[str, NDArray[Any]]:
    """The arrays of the files whose names begin so, by content."""
    return {name: _array(store, dataset, name) for name in dataset.files if name.startswith(beginning)}


def _array(store: Store, dataset: Dataset, name: str) -> NDArray[Any]:
    return open_array(_path(store, dataset, name))


def class_counts(documents: Documents) -> list[tuple[Label, int]]:
    """The classes with the number of documents labeled with each, sorted."""
    if documents.label_sets is None:
        counts = np.bincount(documents.class_indices + 1, minlength=len(documents.classes) + 1)[1:]
    else:
        counts = documents.label_sets.counts
    return list(zip(documents.classes, counts.tolist(), strict=True))


def of_kind(documents: Documents, kind: LabelKind) -> Documents:
    """The documents with their labels as labels of this kind; of several, the first where many have more than one."""
    if kind == documents.label_kind:
        return documents
    if documents.label_sets is not None:
        return documents._replace(class_indices=documents.label_sets.single(), label_sets=None)
    nothing = np.broadcast_to(np.int32(UNLABELED), len(documents.class_indices))
    return documents._replace(
        class_indices=nothing, label_sets=LabelSets.of_single(documents.class_indices, documents.classes)
    )


def changed(
    documents: Documents,
    labels: Mapping[int, Given | None],
    excluded: Mapping[int, Sequence[Label]] | None = None,
    most: int | None = None,
) -> Documents:
    """The documents after labels by position have changed, and of several labels those that are ``excluded``; None
    removes a label.

    Classes that nothing names any more are left out. Integers sort before strings, should there be both. Raises
    LimitExceeded for more than ``most`` classes.
    """
    fresh = {each for given in (*labels.values(), *(excluded or {}).values()) for each in labels_in(given)}
    every = sorted({*documents.classes, *fresh}, key=label_order)
    if documents.label_sets is None:
        numbers: dict[Any, int] = {None: UNLABELED, **{label: number for number, label in enumerate(every)}}
        class_indices = np.append(places_among(documents.classes, every), UNLABELED)[documents.class_indices]
        for position, label in labels.items():
            class_indices[position] = numbers[label]
        named, sets = np.unique(class_indices[class_indices >= 0]), None
    else:
        class_indices = documents.class_indices
        sets = _changed_sets(documents.label_sets.among(every), labels, excluded or {})
        named = np.unique(sets.indices)
    voted = () if documents.votes is None else np.unique(documents.votes.class_index).tolist()
    found = {*(every[place] for place in named.tolist()), *(documents.classes[place] for place in voted)}
    left = sorted(found, key=label_order)
    if most is not None and len(left) > most:
        raise LimitExceeded("classes", most, FEWER_CLASSES)
    if sets is None:
        class_indices = np.append(places_among(every, left), UNLABELED).astype(np.int32)[class_indices]
    return documents._replace(
        class_indices=class_indices,
        classes=left,
        label_sets=sets and sets.among(left),
        votes=documents.votes and documents.votes.among(left),
    )


def _changed_sets(
    sets: LabelSets, labels: Mapping[int, Given | None], excluded: Mapping[int, Sequence[Label]]
) -> LabelSets:
    """The labels of several, of classes that have all the new ones.

    Labels that a document is said to have are no longer excluded.
    """
    positions = np.array(sorted({*labels, *excluded}), np.int64)
    before = sets.taken(positions)
    known = zip(positions.tolist(), before.sets(), before.sets(EXCLUDED), before.complete.tolist(), strict=True)
    numbers = {label: number for number, label in enumerate(sets.classes)}
    applied: list[list[int] | None] = []
    others: list[list[int]] = []
    for position, own, out, complete in known:
        given = labels.get(position, tuple(own) if complete else None)
        applied.append(None if given is None else [numbers[label] for label in labels_in(given)])
        left = excluded.get(position, [label for label in out if label not in labels_in(given)])
        others.append([numbers[label] for label in left])
    return sets.replaced(positions, LabelSets.of(applied, others, sets.classes))


def annotated(documents: Documents, answers: Mapping[int, Answer]) -> Documents:
    """The documents with the labels that people gave them, by position, in place of their own.

    Skipped documents keep their own.
    """
    labels = {position: answer.label for position, answer in answers.items() if answer.label is not None}
    if not labels:
        return documents
    drawn = np.zeros(len(documents.class_indices), np.int8) if documents.drawn is None else np.array(documents.drawn)
    for position in labels:
        drawn[position] = answers[position].draw
    known = drawn if (drawn != Draw.UNKNOWN).any() else None
    return changed(documents, labels)._replace(drawn=known)


def with_people(documents: Documents, answers: Mapping[int, Answer]) -> Documents:
    """The documents as a training learns from them: with people as voters, once two of them differ.

    A document to which people gave different labels has their votes and no label, until somebody settles it; so has one
    that a single person labeled who is less than sure by what others said elsewhere. Without labels of two classes that
    are left, all have the labels that most people gave.
    """
    labeled = annotated(documents, answers)
    compared = [answer.votes for answer in answers.values() if len(answer.votes) > 1]
    if documents.label_sets is not None or all(len({*votes.values()}) < 2 for votes in compared):
        return labeled
    unsure, people, votes = less_than_sure(compared), dict[int, bool](), dict[int, dict[str, Label]]()
    for position, answer in answers.items():
        if answer.label is not None:
            given = {by: each for by, each in answer.votes.items() if isinstance(each, str | int)}
            votes[position] = {by: each for by, each in given.items() if by != answer.settled_by}
            if answer.settled_by is None:
                people[position] = answer.agreed and (len(given) > 1 or not unsure.issuperset(given))
    left = changed(labeled, {position: None for position, certain in people.items() if not certain})
    if len(np.unique(left.class_indices[left.class_indices >= 0])) < 2:
        return labeled
    voted = (left.votes or Votes.none(len(left.class_indices))).joined(votes)
    classes = sorted({*left.classes, *voted.classes}, key=label_order)
    by_voters = np.zeros(len(left.class_indices), bool)
    by_voters[[*people]] = [*people.values()]
    return left._replace(
        class_indices=np.append(places_among(left.classes, classes), UNLABELED).astype(np.int32)[left.class_indices],
        classes=classes,
        votes=voted.among(classes),
        by_voters=by_voters,
    )
