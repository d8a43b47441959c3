"""Datasets: manifests and files in the store.

datasets/{id}/manifest.json    the manifest: with it the dataset exists
datasets/{id}/*.npy, *.ndjson  arrays and ids; labels alone for a dataset that shares the documents of another
datasets/{id}/profile.json     what people call the dataset and its classes; it may change
datasets/{id}/shared/{other}   dataset ``other`` uses the documents here; created before its manifest, removed after it
datasets/{id}/suggested/*.json documents here that were suggested to be labeled; see ``annotations/offered.py``
datasets/{id}/annotations/*    what people did with the documents; see ``annotations/log.py``
datasets/{id}/merged/*         the same, many entries together
datasets/{id}/audits/*.json    random samples to label; see ``annotations/offered.py``
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from pydantic import ConfigDict, Field

from core.documents.drawn import Draw
from storage.errors import Conflict, NotFound, StoreDamaged, translate_os_errors
from storage.names import check_name, first_page, is_id
from storage.process.settings import Settings
from storage.recent import LastUsed
from storage.records import Dataset, Given, Label, LabelKind, Record
from storage.repositories.datasets.annotations.answers import Answer, NewAnnotation, checked_entries
from storage.repositories.datasets.annotations.log import AnnotationLog
from storage.repositories.datasets.annotations.offered import Audits, SuggestedDocuments
from storage.repositories.datasets.builder import Changes, DatasetBuilder, relabeled
from storage.repositories.datasets.documents import (
    Documents,
    annotated,
    open_documents,
    open_fields,
    open_ids,
    with_people,
)
from storage.repositories.datasets.files.extra_fields import StoredFields
from storage.repositories.datasets.files.ids import IdIndex, Ids
from storage.repositories.datasets.quota import Quota
from storage.repositories.deletions import Deletions
from storage.repositories.jobs import Jobs
from storage.repositories.sightings import Sightings
from storage.store import Store, json_records, staging_folder


class ClassProfile(Record):
    """How people see a class: its place among the others is that in the list."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: Label
    """Name of the class, which is the label of its documents."""
    key: str | None = None
    """Key of the keyboard that gives it: the one that was set; of at most nine classes else a digit; null: none."""
    description: str = ""
    color: str | None = None
    """Colour as #rrggbb; null: none."""


class DatasetProfile(Record):
    """Names that people give a dataset and its classes: ``datasets/{id}/profile.json``. It may change."""

    name: str | None = None
    """name in place of that of the manifest"""
    archived: bool = False
    guidelines: str = ""
    """how to label, in the words of who knows"""
    shares: dict[str, float] = Field(default={})
    """weight of each person's share of the documents; empty: each document is for whoever comes"""
    overlap: float = 0.0
    """share of the documents that everybody answers"""
    clusters: dict[str, str] = Field(default={})
    """names of clusters of first looks, by id of the job and number of the cluster with / between them"""
    classes: list[ClassProfile] = Field(default=[])


_MOST_IDS = 1 << 23
"""Ids of all datasets whose hashes are kept, 16 bytes each; beyond, those of the least recently used datasets are
dropped."""
_MOST_ENTRIES = 1_000_000
"""Entries of all logs that a process keeps; beyond, it forgets the logs that were least recently used."""


class Datasets:
    """Datasets of a store. A sealed dataset does not change."""

    def __init__(
        self,
        store: Store,
        settings: Settings | None = None,
        quota: Quota | None = None,
        jobs: Jobs | None = None,
        *,
        abandoned_seconds: float = 86_400.0,
    ) -> None:
        self._store = store
        self._jobs = jobs or Jobs(store)
        self._quota = quota or Quota(store)
        self._abandoned_seconds = abandoned_seconds
        self._settings = settings or Settings.model_construct()
        self._sightings = Sightings()
        self._deletions = Deletions(store, self._sightings)
        self._suggestions = SuggestedDocuments(store)
        self._logs = LastUsed[AnnotationLog](_MOST_ENTRIES, len)
        self._indexes = LastUsed[IdIndex](_MOST_IDS, len)
        self.audits = Audits(store)

    def builder(self, name: str | None = None) -> DatasetBuilder:
        """A builder of a new dataset; raises InvalidName, QuotaExceeded."""
        return DatasetBuilder(
            self._store, self._within_quota(), self._quota, None if name is None else check_name("dataset", name)
        )

    def get(self, id: str) -> Dataset:
        """The manifest of a dataset; raises NotFound."""
        found = json_records.find(self._store, _manifest(id), Dataset) if is_id("ds", id) else None
        if found is None:
            raise NotFound("dataset", id)
        return found

    def list(self, limit: int = 50, cursor: str | None = None) -> tuple[list[Dataset], str | None]:
        """At most ``limit`` datasets, newest first, after ``cursor``; and the cursor of the next page, None after the
        last.
        """
        return first_page(self.every(cursor), limit, lambda dataset: dataset.id)

    def every(self, before: str | None = None) -> Iterator[Dataset]:
        """The datasets that are older than the dataset ``before``, newest first."""
        ids = (id for id in reversed(self._ids()) if before is None or id < before)
        found = (json_records.find_readable(self._store, _manifest(id), Dataset) for id in ids)
        return (dataset for dataset in found if dataset is not None)

    def open(self, id: str, annotations: int | None = None) -> Documents:
        """The documents and labels of a dataset; raises NotFound, also when it is deleted meanwhile.

        ``annotations`` is a number of entries of its log: with it documents have the labels that people gave them in
        these entries.
        """
        return self.open_annotated(id, self._log(id).answers(annotations) if annotations else {})

    def open_to_train(self, id: str, annotations: int | None) -> Documents:
        """The documents as ``open``, but with people as voters where they differ."""
        return with_people(self.open(id), self._log(id).answers(annotations)) if annotations else self.open(id)

    def open_annotated(self, id: str, answers: Mapping[int, Answer]) -> Documents:
        """The documents of a dataset with the labels of these answers, by position, in place of their own; raises
        NotFound as ``open``.
        """
        return annotated(open_documents(self._store, self.get(id)), answers)

    def log(self, id: str) -> AnnotationLog:
        """The log of the annotations of a dataset; raises NotFound."""
        self.get(id)
        return self._log(id)

    def _log(self, id: str) -> AnnotationLog:
        return self._logs.of(id, lambda: AnnotationLog(self._store, id))

    def annotate(self, id: str, given: Sequence[NewAnnotation]) -> tuple[int, int]:
        """Append to the log of a dataset; the number of entries then, and how many were new.

        Raises NotFound, LimitExceeded, and InvalidDocuments naming documents that are unknown or labels that are not
        valid: then nothing is appended.
        """
        dataset, log = self.get(id), self._log(id)
        log.refreshed()
        positions = self.positions(id, {each.document for each in given})
        label_type = type(dataset.classes[0][0]) if dataset.classes else log.label_type
        draws = self._suggestions.of(dataset.documents) | dict.fromkeys(self.audits.drawn(id), Draw.RANDOM)
        appended = log.append(
            checked_entries(given, positions, label_type, draws, dataset, self._settings.max_document_labels)
        )
        # what was appended to a dataset that is deleted meanwhile must not be promised
        self.get(id)
        return appended

    def take_back(self, id: str, batch: str, at: datetime) -> tuple[int, int]:
        """Append that all entries of a batch are taken back, whatever was done since; the number of entries then, and
        how many were new. Idempotent. Raises NotFound, also for the batch.
        """
        log = self.log(id)
        entries = log.batch(batch)
        if not entries:
            raise NotFound("batch", batch)
        cleared = {
            "action": "undo",
            "label": None,
            "labels": None,
            "note": None,
            "drawn": Draw.UNKNOWN.word,
            "batch": None,
            "at": at,
        }
        return log.append(
            [entry.model_copy(update={**cleared, "id": f"undo-{entry.id}", "undo_of": entry.id}) for entry in entries]
        )

    def profile(self, id: str) -> DatasetProfile:
        """The names that people give a dataset, which exists, and its classes."""
        return json_records.find(self._store, _profile(id), DatasetProfile) or DatasetProfile()

    def put_profile(self, id: str, profile: DatasetProfile) -> None:
        """Set the names of a dataset and its classes, at once for every process; raises NotFound, InvalidName."""
        if profile.name is not None:
            check_name("dataset", profile.name)
        self.get(id)
        self._store.replace(_profile(id), json_records.encode(profile))

    def positions(self, id: str, wanted: Collection[str]) -> dict[str, int]:
        """Positions of the documents with these ids; ids that no document has are left out.

        Raises NotFound for the dataset.
        """
        dataset, ids = self.get(id), self.ids(id)
        # documents never change, so neither does their index
        return self._indexes.of(dataset.documents, lambda: IdIndex(ids)).find(wanted)

    def ids(self, id: str) -> Ids:
        """The ids of the documents of a dataset; raises NotFound as ``open``."""
        return open_ids(self._store, self.get(id))

    def fields(self, id: str) -> StoredFields:
        """The extra fields of the documents of a dataset; raises NotFound as ``open``."""
        return open_fields(self._store, self.get(id))

    @translate_os_errors("write", "the labels of a dataset")
    def relabel(
        self,
        id: str,
        labels: Mapping[str, Given | None],
        drawn: Mapping[str, str] | None = None,
        name: str | None = None,
        excluded: Mapping[str, Sequence[Label]] | None = None,
        label_kind: LabelKind | None = None,
    ) -> Dataset:
        """A new dataset that shares the documents of another and differs in the labels of some, by document id (None:
        not known), in the labels that some are known not to have, or in the kind of all labels.

        ``drawn`` says how labels were come by, as the words of core.documents.drawn.Draw by document id. A new label of
        which it says nothing is of the draw in which its document was suggested, if it was; another label keeps its
        draw. Without ``name`` the dataset has the name of the other. Raises NotFound, InvalidName, InvalidDocuments
        naming documents that are unknown, labels that are not valid and those that would be lost, LimitExceeded,
        QuotaExceeded.
        """
        base, settings = self.get(id), self._within_quota()
        if name is not None:
            base = base.model_copy(update={"name": check_name("dataset", name)})
        with staging_folder(self._store) as folder:
            changes = Changes(labels, drawn or {}, self._suggestions.of(base.documents), excluded or {}, label_kind)
            dataset, paths = relabeled(base, self.open(id), changes, settings, folder)
            self._share(base, dataset, paths)
        return dataset

    def record_suggested(self, id: str, suggested: Mapping[int, Draw]) -> None:
        """Record documents of a dataset, by position, that are suggested to be labeled; raises NotFound.

        Their labels may come in by ``relabel``.
        """
        self._suggestions.record(self.get(id).documents, suggested)

    def _within_quota(self) -> Settings:
        """The settings, with bytes of a dataset that the quota allows; raises QuotaExceeded."""
        most = min(self._settings.max_dataset_bytes, self._quota.left())
        return self._settings.model_copy(update={"max_dataset_bytes": most})

    def _share(self, base: Dataset, dataset: Dataset, paths: Mapping[str, Path]) -> None:
        """Store a relabeled dataset and its files, by content; on an error nothing of it stays."""
        shared = f"datasets/{base.documents}/shared/{dataset.id}"
        self._store.create(shared, b"")
        try:
            for content, path in paths.items():
                self._store.upload(dataset.files[content].key, path)
            # a deletion of the documents before this mark has removed the base; a later one sees the mark
            self.get(base.id)
            self._quota.seal(dataset)
            # one that took the mark for abandoned has removed the base by now; a later one sees the manifest
            self.get(base.id)
        except BaseException:
            # first the manifest, which may be there though its creation failed: while it is, nothing else may be
            # missing
            self._store.delete(_manifest(dataset.id))
            self._store.delete(f"datasets/{dataset.id}")
            self._store.delete(shared)
            raise

    def delete(self, id: str) -> None:
        """Delete a dataset; its documents are deleted with the last dataset that shares them.

        Raises NotFound, Conflict while a job needs it.
        """
        dataset = self.get(id)
        # a job that is stored after the mark is refused; one that was stored before is seen here
        mark = self._deletions.begin(id)
        try:
            job = self._jobs.unfinished_job_of(dataset)
            if job is not None:
                raise Conflict(f"dataset {id!r} is needed by job {job.request.id!r}, which is {job.state.value}")
            if not self._deletions.decide(mark, delete=True):
                raise Conflict(f"the deletion of dataset {id!r} took too long and was given up; try again")
        except BaseException:
            self._deletions.end(mark)
            raise
        self._finish_deletion(dataset, mark)

    def recover_deletions(self) -> None:
        """Complete the interrupted deletions that were decided, and undo the others."""
        for mark, id in self._deletions.overdue():
            try:
                dataset = json_records.find(self._store, _manifest(id), Dataset)
            except StoreDamaged:
                continue
            if dataset is None:
                self._delete_unshared(id)
                self._deletions.end(mark)
            elif self._deletions.decide(mark, delete=False):
                self._finish_deletion(dataset, mark)
            else:
                self._deletions.withdraw(mark)

    def remove_abandoned(self) -> None:
        """Remove the files of uploads and relabelings that were not sealed, and decisions about deletions, of
        ``abandoned_seconds`` ago.
        """
        self._deletions.remove_abandoned(self._abandoned_seconds)
        for id in self._ids():
            if not self._store.exists(_manifest(id)) and self._sightings.old(id, self._abandoned_seconds):
                self._delete_unshared(id)

    def _ids(self) -> Sequence[str]:
        """Ids of all datasets, unsealed ones included, oldest first."""
        return [id for id in self._store.children("datasets") if is_id("ds", id)]

    def _finish_deletion(self, dataset: Dataset, mark: str) -> None:
        """Complete a deletion that was decided. Idempotent."""
        self._store.delete(_manifest(dataset.id))
        self._store.delete(f"datasets/{dataset.documents}/shared/{dataset.id}")
        self._delete_unshared(dataset.id)
        self._delete_unshared(dataset.documents)
        self._deletions.end(mark)
        self._quota.recount()

    def _delete_unshared(self, id: str) -> None:
        """Delete the files of a dataset without a manifest, unless others share them."""
        if self._store.exists(_manifest(id)):
            return
        seen: set[str] = set()
        # listed until nothing new is there: one that was seen may have been relabeled, and deleted before it was looked
        # at
        while new := set(self._store.children(f"datasets/{id}/shared")) - seen:
            for other in filter(partial(is_id, "ds"), sorted(new)):
                if self._store.exists(_manifest(other)) or not self._sightings.old(other, self._abandoned_seconds):
                    return
            seen |= new
        self._store.delete(f"datasets/{id}")


def _profile(id: str) -> str:
    return f"datasets/{id}/profile.json"


def _manifest(id: str) -> str:
    return f"datasets/{id}/manifest.json"
