"""Builder of a dataset from batches. Memory does not grow with the number of documents."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from typing import Self

from core.documents.kinds import checked, shape_fault
from core.errors import MAX_FAULTS, Fault, InvalidDocuments, refuse
from storage.errors import LimitExceeded, StoreUnavailable
from storage.names import new_id
from storage.process.settings import DatasetLimits
from storage.records import Dataset, File
from storage.repositories.datasets.files.extra_fields import ExtraFieldsWriter
from storage.repositories.datasets.files.ids import Ids, IdWriter, all_valid, id_detail
from storage.repositories.datasets.files.row_writers import PartWriter
from storage.repositories.datasets.label_files import Labels, LabelWriters
from storage.repositories.datasets.labels import Batch
from storage.repositories.datasets.manifest import class_warnings, content_digest
from storage.store import Store, json_records, staging_folder
from storage.store.local_files import translate_os_errors


class DatasetBuilder:
    """Builder of one dataset; a context manager. If its block is left before ``seal``, nothing stays in the store.

    Explicit zeros are dropped, so that the same documents give the same bytes in whatever format they were sent.
    """

    def __init__(self, store: Store, limits: DatasetLimits, name: str | None) -> None:
        self.n_documents = 0
        self._store = store
        self._limits = limits
        self._name = name
        self._id = new_id("ds")

    @translate_os_errors("write", "a dataset")
    def __enter__(self) -> Self:
        self._held = stack = ExitStack()
        with ExitStack() as undo:
            undo.callback(stack.close)
            self._folder = stack.enter_context(staging_folder(self._store))
            self._rows = stack.enter_context(PartWriter(self._folder, self._limits))
            self._labels = LabelWriters(self._folder, self._limits, stack)
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
        self._check_shape(batch)
        rows, faults = checked(batch.rows, MAX_FAULTS)
        found = self._faults(batch, faults)
        refuse([Fault(self._document(batch, place), field, detail) for place, field, detail in found])
        if self.n_documents + rows.n_rows > self._limits.documents:
            raise LimitExceeded("documents", self._limits.documents)
        self._rows.append(rows)
        self._labels.append(batch)
        self._ids.append(batch.ids, rows.n_rows)
        self._fields.append(batch.fields, rows.n_rows)
        self.n_documents += rows.n_rows
        written = (self._rows.n_bytes, self._labels.n_bytes, self._ids.n_bytes, self._fields.n_bytes)
        if sum(written) > self._limits.bytes:
            raise LimitExceeded("bytes", self._limits.bytes)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that grow with the documents: the names of named features."""
        return self._rows.held_bytes

    @translate_os_errors("write", "a dataset")
    def seal(self, warnings: Sequence[str] = ()) -> Dataset:
        """Store the files, then the manifest, and return it; on an error nothing stays in the store. ``warnings`` go
        before its own.

        Raises InvalidDocuments for ids that occur twice and for a dataset without documents, and StoreUnavailable.
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
            json_records.create(self._store, f"datasets/{self._id}/manifest.json", dataset)
            self._check_files(dataset)
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

    def _check_files(self, dataset: Dataset) -> None:
        """Raise StoreUnavailable if files were removed meanwhile: a process with a clock a day ahead takes a long
        upload for abandoned.
        """
        there = set(self._store.children(f"datasets/{dataset.id}"))
        gone = sorted(name for file in dataset.files.values() if (name := file.key.rpartition("/")[2]) not in there)
        if gone:
            raise StoreUnavailable(
                f"cannot write dataset {dataset.id}: {gone[0]} was removed meanwhile, as if abandoned; is a clock "
                "ahead by a day?"
            )

    def _check_shape(self, batch: Batch) -> None:
        wrong = shape_fault(batch.rows)
        if wrong is not None:
            raise InvalidDocuments(f"{wrong.field} {wrong.detail}", [wrong])
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
                detail = f"{len(given)} given for {batch.rows.n_rows} documents"
                raise InvalidDocuments(f"{field}: {detail}", [Fault("", field, detail)])

    def _faults(self, batch: Batch, of_rows: list[Fault]) -> list[tuple[int, str, str]]:
        found = [(int(fault.document), fault.field, fault.detail) for fault in of_rows]
        found += self._labels.faults(batch)
        for place, id in enumerate(() if batch.ids is None or all_valid(batch.ids) else batch.ids):
            detail = None if id is None else id_detail(id)
            if detail is not None:
                found.append((place, "id", detail))
        return sorted(found)[:MAX_FAULTS]

    def _document(self, batch: Batch, place: int) -> str:
        """Name of a document in a fault: its id if that is valid, else its position in the dataset."""
        id = batch.ids[place] if batch.ids is not None else None
        return str(self.n_documents + place) if id is None or id_detail(id) is not None else id
