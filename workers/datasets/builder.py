"""Building a dataset from batches, with memory that does not grow with the number of documents."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import numpy as np

from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from core.rows import SparseRows, find_faults, misfit, sorted_rows, without_zeros
from workers import records
from workers.contract import Dataset, File, Label
from workers.datasets.arrays import ArrayFile, chunks, open_array
from workers.datasets.batch import Batch
from workers.datasets.ids import IdWriter, id_fault
from workers.datasets.labels import Classes
from workers.datasets.manifest import class_warnings, content_digest, document_warnings
from workers.errors import LimitExceeded, StoreUnavailable
from workers.names import new_id
from workers.settings import Limits
from workers.storage import Store
from workers.storage.trouble import disk

SEEN_FEATURES = 1 << 24
"""Features are told as never seen up to this many; beyond, they are hashes, of which most are never seen."""


class DatasetBuilder:
    """Takes batches and seals them as one dataset. A context manager, of use once entered: whoever leaves it without sealing leaves nothing behind.

    Values that are stored though they are zero are dropped, so that the same documents give the same bytes however they were sent.
    """

    def __init__(self, store: Store, limits: Limits, name: str | None) -> None:
        self.n_documents = 0
        self._store = store
        self._limits = limits
        self._name = name
        self._id = new_id("ds")
        self._classes = Classes(limits.classes)
        self._n_features = 0
        self._n_empty = 0
        self._seen = np.zeros(0, bool)

    @disk("write", "a dataset")
    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = self._store.staging()
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            self._indptr = stack.enter_context(ArrayFile(self._folder / "indptr.npy", "<i8"))
            self._indices = stack.enter_context(ArrayFile(self._folder / "indices.npy", "<u4"))
            self._values = stack.enter_context(ArrayFile(self._folder / "values.npy", "<f4"))
            self._labels = stack.enter_context(ArrayFile(self._folder / "codes.npy", "<i4"))
            self._ids = stack.enter_context(closing(IdWriter(self._folder)))
            self._indptr.append(np.zeros(1, np.int64))
            self._held = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    @disk("write", "a dataset")
    def add(self, batch: Batch) -> None:
        """Check a batch and append it.

        Raises InvalidDocuments with at most MAX_FAULTS faults, each naming the document by its id (or position) and the field, LimitExceeded,
        and StoreUnavailable. After any of them the builder can only be left.
        """
        self._check_shape(batch)
        rows = sorted_rows(batch.rows)
        self._refuse(self._faults(batch, rows), batch)
        rows = without_zeros(rows)
        self._check_limits(batch, rows)
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        self._labels.append(self._classes.encode(batch.labels))
        self._ids.append(batch.ids, rows.n_rows)
        self._indptr.append(rows.indptr[1:] - start + len(self._indices))
        self._indices.append(rows.indices[start:stop])
        self._values.append(rows.values[start:stop])
        self._note(rows)

    @disk("write", "a dataset")
    def seal(self) -> Dataset:
        """Make everything durable, the manifest last, and return it; or leave nothing.

        Raises InvalidDocuments for ids used twice or if there is no document, and StoreUnavailable.
        """
        if not self.n_documents:
            raise InvalidDocuments("there is no document", [Fault("", "documents", "there is none")])
        ids = self._ids.seal()
        n_nonzeros = len(self._indices)
        paths = {"indptr": self._indptr.finish(), "indices": self._indices.finish(), "values": self._values.finish()}
        if ids is not None:
            paths["ids"] = ids
        labels, classes = self._final_labels()
        paths["labels"] = labels.finish()
        try:
            # one is hashed while the system writes another
            with ThreadPoolExecutor(2) as threads:
                uploaded = threads.map(lambda path: self._store.upload(f"datasets/{self._id}/{path.name}", path), paths.values())
                files = dict(zip(paths, uploaded, strict=True))
            dataset = self._manifest(classes, n_nonzeros, files)
            records.create(self._store, f"datasets/{self._id}/manifest.json", dataset)
        except BaseException:
            # what cannot be removed either is collected a day later
            with suppress(StoreUnavailable):
                self._store.delete(f"datasets/{self._id}")
            raise
        return dataset

    def _manifest(self, classes: list[tuple[Label, int]], n_nonzeros: int, files: dict[str, File]) -> Dataset:
        unseen = self._n_features - int(self._seen.sum()) if self._n_features <= SEEN_FEATURES else None
        return Dataset(
            id=self._id,
            name=self._name,
            n_documents=self.n_documents,
            n_labeled=sum(count for _, count in classes),
            n_features=self._n_features,
            n_nonzeros=n_nonzeros,
            classes=classes,
            sha256=content_digest(self._n_features, classes, files),
            created_at=datetime.now(UTC),
            warnings=[*document_warnings(self._n_empty, unseen), *class_warnings(classes)],
            documents=self._id,
            files=files,
        )

    def _check_shape(self, batch: Batch) -> None:
        wrong = misfit(batch.rows)
        if wrong is not None:
            raise InvalidDocuments(f"{wrong.field} {wrong.detail}", [wrong])
        for field, given in (("label", batch.labels), ("id", batch.ids)):
            if given is not None and len(given) != batch.rows.n_rows:
                detail = f"{len(given)} given for {batch.rows.n_rows} documents"
                raise InvalidDocuments(f"{field}: {detail}", [Fault("", field, detail)])

    def _faults(self, batch: Batch, rows: SparseRows) -> list[tuple[int, str, str]]:
        found = [(int(fault.document), fault.field, fault.detail) for fault in find_faults(rows, MAX_FAULTS)]
        found += [(place, "label", detail) for place, detail in self._classes.faults(batch.labels, MAX_FAULTS)]
        for place, id in enumerate(batch.ids or ()):
            fault = None if id is None else id_fault(id, place)
            if fault is not None:
                found.append((place, fault.field, fault.detail))
        return sorted(found)[:MAX_FAULTS]

    def _refuse(self, found: list[tuple[int, str, str]], batch: Batch) -> None:
        if not found:
            return
        faults = [Fault(self._document(batch, place), field, detail) for place, field, detail in found]
        first = faults[0]
        raise InvalidDocuments(f"document {first.document}: {first.field}: {first.detail}", faults)

    def _document(self, batch: Batch, place: int) -> str:
        """How a document of a batch is named to people: by its id if it has a good one, else by its position in the dataset."""
        id = batch.ids[place] if batch.ids is not None else None
        return str(self.n_documents + place) if id is None or id_fault(id, place) is not None else id

    def _check_limits(self, batch: Batch, rows: SparseRows) -> None:
        n_documents, n_nonzeros = self.n_documents + rows.n_rows, len(self._indices) + rows.n_nonzeros
        n_bytes = 12 * n_documents + 8 * n_nonzeros
        if n_documents > self._limits.documents:
            raise LimitExceeded("documents", self._limits.documents)
        if rows.n_features > self._limits.features:
            raise LimitExceeded("features", self._limits.features)
        if n_nonzeros > self._limits.nonzeros:
            raise LimitExceeded("nonzeros", self._limits.nonzeros)
        if n_bytes + self._ids.n_bytes > self._limits.bytes:
            raise LimitExceeded("bytes", self._limits.bytes)

    def _note(self, rows: SparseRows) -> None:
        """Count what the manifest will tell."""
        self.n_documents += rows.n_rows
        self._n_features = max(self._n_features, rows.n_features)
        self._n_empty += int(np.count_nonzero(rows.indptr[1:] == rows.indptr[:-1]))
        if self._n_features > SEEN_FEATURES:
            self._seen = np.zeros(0, bool)
            return
        if len(self._seen) < self._n_features:
            self._seen = np.pad(self._seen, (0, self._n_features - len(self._seen)))
        indices = rows.indices[rows.indptr[0] : rows.indptr[-1]]
        # most are known before long, and to look them up takes a fraction of marking them
        self._seen[indices[~self._seen.take(indices, mode="clip")]] = True

    def _final_labels(self) -> tuple[ArrayFile, list[tuple[Label, int]]]:
        """The labels with their final codes, and how often each class occurs."""
        classes, final = self._classes.sorted()
        counts = np.zeros(len(classes) + 1, np.int64)
        labels = ArrayFile(self._folder / "labels.npy", "<i4")
        for codes in chunks(open_array(self._labels.finish())):
            renumbered = final[codes]
            counts += np.bincount(renumbered + 1, minlength=len(counts))
            labels.append(renumbered)
        return labels, list(zip(classes, counts[1:].tolist(), strict=True))
