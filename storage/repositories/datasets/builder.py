"""Datasets in the making: from batches, in memory that does not grow with the number of documents, or from another
dataset that differs in some labels.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.documents.kinds import checked, shape_fault
from core.errors import MAX_FAULTS, Fault, InvalidDocuments, refuse, refused
from storage.errors import LimitExceeded, StoreUnavailable, translate_os_errors
from storage.names import new_id
from storage.process.settings import Settings
from storage.records import Dataset, File, Given, Label, LabelKind, labels_in
from storage.repositories.datasets.documents import Documents, changed, class_counts, of_kind
from storage.repositories.datasets.files.extra_fields import ExtraFieldsWriter
from storage.repositories.datasets.files.ids import IdIndex, Ids, IdWriter, all_valid, id_detail
from storage.repositories.datasets.files.npy import WITHOUT_LABEL, DrawnWriter, NpyWriter, draw_detail
from storage.repositories.datasets.files.row_writers import PartWriter
from storage.repositories.datasets.label_files import Labels, LabelSetsWriter, LabelWriters
from storage.repositories.datasets.labels import Batch, LabelLists, labels_detail, list_faults
from storage.repositories.datasets.manifest import class_warnings, content_digest
from storage.repositories.datasets.quota import Quota
from storage.store import Store, staging_folder
from storage.store.local_files import sha256_of


class DatasetBuilder:
    """Builder of one dataset; a context manager. If its block is left before ``seal``, nothing stays in the store.

    Explicit zeros are dropped, so that the same documents give the same bytes in whatever format they were sent.
    """

    def __init__(self, store: Store, settings: Settings, quota: Quota, name: str | None) -> None:
        self.n_documents = 0
        self._store = store
        self._settings = settings
        self._quota = quota
        self._name = name
        self._id = new_id("ds")

    @translate_os_errors("write", "a dataset")
    def __enter__(self) -> Self:
        self._held = stack = ExitStack()
        with ExitStack() as undo:
            undo.callback(stack.close)
            self._folder = stack.enter_context(staging_folder(self._store))
            self._rows = stack.enter_context(PartWriter(self._folder, self._settings))
            self._labels = LabelWriters(self._folder, self._settings, stack)
            self._ids = stack.enter_context(closing(IdWriter(self._folder)))
            self._fields = ExtraFieldsWriter(self._folder, stack)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @translate_os_errors("write", "a dataset")
    def add(self, batch: Batch) -> None:
        """Validate a batch and append it.

        Raises InvalidDocuments with at most MAX_FAULTS faults, of which each names the document by its id or position,
        and the field; LimitExceeded; StoreUnavailable. After an error the builder cannot be used any more. A batch
        without documents changes nothing.
        """
        if not batch.rows.n_rows:
            return
        refuse(filter(None, [shape_fault(batch.rows)]))
        for field, given in (
            ("label", batch.labels),
            ("id", batch.ids),
            ("drawn", batch.drawn),
            ("fields", batch.fields and batch.fields.values),
            ("labels", batch.label_lists and batch.label_lists.applied),
            ("not", batch.label_lists and batch.label_lists.excluded),
            ("votes", batch.votes),
            ("weight", batch.weights),
        ):
            if given is not None and len(given) != batch.rows.n_rows:
                raise refused(f"{len(given)} given for {batch.rows.n_rows} documents", field)
        rows, faults = checked(batch.rows, MAX_FAULTS)
        found = [(int(fault.document), fault.field, fault.detail) for fault in faults]
        found += self._labels.faults(batch)
        for place, id in enumerate(() if batch.ids is None or all_valid(batch.ids) else batch.ids):
            detail = None if id is None else id_detail(id)
            if detail is not None:
                found.append((place, "id", detail))
        refuse([Fault(self._document(batch, place), *fault) for place, *fault in sorted(found)[:MAX_FAULTS]])
        if self.n_documents + rows.n_rows > self._settings.max_documents:
            raise LimitExceeded("documents", self._settings.max_documents)
        self._rows.append(rows)
        self._labels.append(batch)
        self._ids.append(batch.ids, rows.n_rows)
        self._fields.append(batch.fields, rows.n_rows)
        self.n_documents += rows.n_rows
        written = (self._rows.n_bytes, self._labels.n_bytes, self._ids.n_bytes, self._fields.n_bytes)
        if sum(written) > self._settings.max_dataset_bytes:
            raise LimitExceeded("bytes", self._settings.max_dataset_bytes)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that grow with the documents: the names of named features."""
        return self._rows.held_bytes

    @translate_os_errors("write", "a dataset")
    def seal(self, warnings: Sequence[str] = ()) -> Dataset:
        """Store the files, then the manifest, and return it; on an error nothing stays in the store. ``warnings`` go
        before its own.

        Raises InvalidDocuments for ids that occur twice and for a dataset without documents, QuotaExceeded, and
        StoreUnavailable.
        """
        if not self.n_documents:
            raise InvalidDocuments("there is no document", [Fault("", "documents", "there is none")])
        ids = self._ids.seal()
        labels, paths = self._labels.finish(Ids(ids, self.n_documents))
        paths |= self._rows.finish() | self._fields.finish() | ({} if ids is None else {"ids": ids})
        try:
            # one file is hashed while the system writes another
            with ThreadPoolExecutor(2) as threads:
                keys = [f"datasets/{self._id}/{content}{path.suffix}" for content, path in paths.items()]
                files = dict(zip(paths, threads.map(self._store.upload, keys, paths.values()), strict=True))
            dataset = self._manifest(labels, files, warnings)
            self._quota.seal(dataset)
            # a process with a clock a day ahead takes a long upload for abandoned
            there = set(self._store.children(f"datasets/{dataset.id}"))
            gone = sorted(name for file in files.values() if (name := file.key.rpartition("/")[2]) not in there)
            if gone:
                raise StoreUnavailable(
                    f"cannot write dataset {dataset.id}: {gone[0]} was removed meanwhile, as if abandoned; is a clock "
                    "ahead by a day?"
                )
        except BaseException:
            # what cannot be removed either is garbage, which is collected a day later
            with suppress(StoreUnavailable):
                # first the manifest, which may be there though its creation failed: while it is, nothing else may be
                # missing
                self._store.delete(f"datasets/{self._id}/manifest.json")
                self._store.delete(f"datasets/{self._id}")
            raise
        return dataset

    def _manifest(self, labels: Labels, files: dict[str, File], warnings: Sequence[str]) -> Dataset:
        rows = self._rows.facts()
        return Dataset(
            id=self._id,
            name=self._name,
            n_documents=self.n_documents,
            kind=rows.kind,
            n_features=rows.n_features,
            n_nonzeros=rows.n_nonzeros,
            parts=rows.parts,
            **labels._asdict(),
            fields=self._fields.names,
            sha256=content_digest(
                rows.n_features,
                rows.parts,
                labels.classes,
                files,
                fields=self._fields.names,
                voters=[*labels.voters],
                voted=labels.voted,
            ),
            created_at=datetime.now(UTC),
            warnings=[*warnings, *rows.warnings, *class_warnings(labels.classes)],
            documents=self._id,
            files=files,
        )

    def _document(self, batch: Batch, place: int) -> str | int:
        """Name of a document in a fault: its id if that is valid, else its position in the dataset."""
        id = batch.ids[place] if batch.ids is not None else None
        return self.n_documents + place if id is None or id_detail(id) is not None else id


_SOUGHT = 1 << 16
"""Ids that are looked up at a time: sorting very many would hold the interpreter."""
_REPLACED = ("labels", "label_sets.", "drawn")
"""beginnings of the names of the files that a relabeled dataset has of its own"""
_ONE = "a document has one label here; label_kind several makes a dataset of several labels of it"
_LIST = "must be a list of labels, or null: a document may have several here"
_LOST = "has not one label alone; give it one label in labels, or null"
_CONTRADICTION = "names a class that labels has, too; give labels without it"


class Changes(NamedTuple):
    """The changes of the labels of a dataset."""

    labels: Mapping[str, Given | None]
    """label, or all of several, by document id, None: not known"""
    drawn: Mapping[str, str]
    """how labels were come by, as words by document id; of those in ``labels`` that are not here the service may know
    it"""
    suggested: Mapping[int, Draw]
    """how documents were suggested to be labeled, by position"""
    excluded: Mapping[str, Sequence[Label]] = MappingProxyType({})
    """labels that a document is known not to have, by document id"""
    label_kind: LabelKind | None = None
    """kind of the labels then; None: as before"""


def relabeled(
    base: Dataset, documents: Documents, changes: Changes, settings: Settings, folder: Path
) -> tuple[Dataset, dict[str, Path]]:
    """The manifest of the changed dataset, which is not stored yet, and its files by content, in ``folder``. ``base``
    does not change.

    Raises InvalidDocuments, LimitExceeded.
    """
    kind = changes.label_kind or base.label_kind
    positions = _positions(documents.ids, changes)
    _refuse_invalid(changes, kind, settings)
    _refuse_lost(documents, kind, changes, positions)
    after = changed(
        of_kind(documents, kind),
        {positions[id]: given for id, given in changes.labels.items()},
        {positions[id]: given for id, given in changes.excluded.items()},
        settings.max_classes,
    )
    _refuse_mixture(documents.classes, after.classes, changes)
    _refuse_contradiction(after)
    refuse(Fault(id, "drawn", WITHOUT_LABEL) for id in changes.drawn if not after.labeled[positions[id]])
    id, (paths, counts) = new_id("ds"), _written(folder, after, _drawn(documents, positions, changes))
    files = {content: file for content, file in base.files.items() if not content.startswith(_REPLACED)}
    for content, path in paths.items():
        digest, size = sha256_of(path)
        files[content] = File(key=f"datasets/{id}/{path.name}", sha256=digest, bytes=size)
    classes = class_counts(after)
    warnings = [warning for warning in base.warnings if warning not in class_warnings(base.classes)]
    fields = {
        "id": id,
        "label_kind": kind,
        "n_labeled": int(np.count_nonzero(after.labeled)),
        "classes": classes,
        "drawn": counts,
        "sha256": content_digest(
            base.n_features, base.parts, classes, files, fields=base.fields, voters=[*base.voters], voted=base.voted
        ),
        "created_at": datetime.now(UTC),
        "warnings": [*warnings, *class_warnings(classes)],
        "files": files,
    }
    return base.model_copy(update=fields), paths


def _written(folder: Path, after: Documents, drawn: NDArray[np.int8]) -> tuple[dict[str, Path], dict[str, int]]:
    """The files of labels and draws by content, and the number of labels by draw."""
    with ExitStack() as stack:
        draws = DrawnWriter(folder, stack)
        draws.append(drawn, len(drawn))
        drawn_file = draws.finish()
        paths = {} if drawn_file is None else {"drawn": drawn_file}
        if after.label_sets is None:
            labels = stack.enter_context(NpyWriter(folder / "labels.npy", "<i4"))
            labels.append(after.class_indices)
            return paths | {"labels": labels.finish()}, draws.counts
        sets = LabelSetsWriter(folder, stack)
        sets.add(after.label_sets)
        return paths | sets.finish(np.arange(len(after.classes), dtype=np.int32)), draws.counts


def _refuse_invalid(changes: Changes, kind: LabelKind, settings: Settings) -> None:
    """Raise InvalidDocuments for labels of another kind than the dataset has, and for those that are not valid."""
    field, wrong = ("label", _ONE) if kind == "single" else ("labels", _LIST)
    several = kind == "several"
    given = {id: each for id, each in changes.labels.items() if each is not None}
    refuse(Fault(id, field, wrong) for id, each in given.items() if isinstance(each, tuple) is not several)
    refuse(Fault(id, "not", _ONE) for id in changes.excluded if not several)
    lists = {field: given, "not": changes.excluded}
    refuse(
        Fault(id, name, detail)
        for name, each in lists.items()
        for id, labels in each.items()
        if (detail := labels_detail(labels_in(labels)))
    )
    if several:
        ids = [*{**changes.labels, **changes.excluded}]
        rows = LabelLists(
            [labels_in(each) if (each := given.get(id)) is not None else None for id in ids],
            [changes.excluded.get(id) for id in ids],
        )
        faults = list_faults(rows, [None] * len(ids), settings.max_document_labels)
        refuse(Fault(ids[place], name, detail) for place, name, detail in faults)
    refuse(Fault(id, "drawn", detail) for id, word in changes.drawn.items() if (detail := draw_detail(word)))


def _drawn(documents: Documents, positions: Mapping[str, int], changes: Changes) -> NDArray[np.int8]:
    """How the labels of all documents were come by, shape (n_documents,)."""
    drawn = np.zeros(len(documents.class_indices), np.int8) if documents.drawn is None else np.array(documents.drawn)
    labeled = documents.labeled
    for id, label in changes.labels.items():
        position = positions[id]
        if label is None:
            drawn[position] = Draw.UNKNOWN
        elif not labeled[position]:
            drawn[position] = changes.suggested.get(position, Draw.UNKNOWN)
    for id, word in changes.drawn.items():
        drawn[positions[id]] = Draw.of(word)
    return drawn


def _refuse_lost(documents: Documents, kind: LabelKind, changes: Changes, positions: Mapping[str, int]) -> None:
    """Raise InvalidDocuments naming documents whose labels cannot be one label, where each may have but one now."""
    sets = documents.label_sets
    if kind == "several" or sets is None:
        return
    lost = np.bincount(sets.owners, minlength=sets.n_rows) != sets.complete
    lost |= sets.complete & (sets.single() < 0)
    lost[[positions[id] for id in changes.labels]] = False
    refuse(Fault(id, "labels", _LOST) for id in documents.ids.taken(np.flatnonzero(lost)[:MAX_FAULTS].tolist()))


def _refuse_contradiction(after: Documents) -> None:
    """Raise InvalidDocuments naming documents of which a class is said to apply and not to apply."""
    sets = after.label_sets
    if sets is not None:
        owners = sets.owners
        twice = (sets.indices[1:] == sets.indices[:-1]) & (owners[1:] == owners[:-1])
        odd = np.unique(owners[1:][twice])[:MAX_FAULTS].tolist()
        refuse(Fault(id, "not", _CONTRADICTION) for id in after.ids.taken(odd))


def _refuse_mixture(before: list[Label], after: list[Label], changes: Changes) -> None:
    """Raise InvalidDocuments if strings and integers would be mixed; it names the documents with new labels of the
    other type.
    """
    if len(set(map(type, after))) > 1:
        given = [
            (id, label) for each in (changes.labels, changes.excluded) for id in each for label in labels_in(each[id])
        ]
        first = next(type(label) for label in (*before, *(label for _, label in given)) if label in after)
        odd = dict.fromkeys(id for id, label in given if type(label) is not first)
        refuse(Fault(id, "label", "labels must be all strings or all integers") for id in odd)


def _positions(ids: Ids, changes: Changes) -> dict[str, int]:
    """Positions of the documents that change; raises InvalidDocuments naming ids that are unknown."""
    index, found = IdIndex(ids), dict[str, int]()
    named = chain(changes.labels, (id for id in (*changes.drawn, *changes.excluded) if id not in changes.labels))
    while wanted := list(islice(named, _SOUGHT)):
        found |= index.find(wanted)
        refuse(Fault(id, "id", "there is no such document") for id in wanted if id not in found)
    return found
