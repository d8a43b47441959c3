"""Datasets: documents are sent, shown, labeled and deleted."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from halfmoon._async.transport import AsyncResource, AsyncTransport, operation
from halfmoon._async_only import DatasetsMixin
from halfmoon.columns import Choice, Column
from halfmoon.display import listed
from halfmoon.encode import body_of
from halfmoon.errors import InvalidData, NotFound
from halfmoon.records import Annotation, DatasetRecord, Label
from halfmoon.shown import ShownDataset, annotation_of, row_of
from halfmoon.values import in_path

_Classes = dict[str, list[dict[str, Any]]]


class AsyncDatasets(AsyncResource, DatasetsMixin):
    """The datasets of a service."""

    @operation("create_dataset")
    async def create(
        self,
        data: Any,
        *,
        text: str | None = None,
        label: Column = None,
        id: Column = None,
        features: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        extra: str | None = None,
        name: str | None = None,
        labels: Any = None,
        weight: Column = None,
        votes: Mapping[str, Column] | None = None,
        separator: str | None = None,
    ) -> "AsyncDataset":
        """Send documents, a slice at a time.

        ``data`` is a data frame of pandas, polars or pyarrow; a list, or any iterable, of texts or of dicts; a matrix
        of NumPy or SciPy; or the path of a file: CSV, TSV, JSON, JSON lines, npz, npy, svmlight, Parquet, or a zip or
        tar of text files in folders named by class.

        ``text``, ``label`` and ``id`` are the names of columns, by default these; label and id may also be lists.
        ``features`` are columns of numbers, in place of text. A label that is missing (None, NaN, "") is none.
        ``labels`` in place of label has all labels that apply: a column of lists, a list of lists, [] where none
        applies and None where that is not known, or an indicator matrix as scikit-learn has it; in a file they stand in
        a cell, with ``separator`` between them, or have a column each, with 0 or 1, whose names have ``separator``
        between them: ``labels="toxic;insult"``. ``weight`` is the weight of each label. ``votes`` are columns or lists
        by voter, by default the columns named ``vote:NAME``; a vote is a class, or a dict of probabilities.
        ``fields`` are columns that are kept beside the documents and not learned from; ``extra`` says what becomes of
        other columns of a file and of unknown fields of dicts: "keep", "ignore" or "refuse". ``name`` is by default
        that of a file, without its ending.
        """
        body = body_of(data, Choice(text, label, id, features, fields, extra, labels, weight, votes, separator))
        headers = {"Content-Type": body.media_type} | ({"Content-Encoding": body.encoding} if body.encoding else {})
        params = {**body.query, "name": name or Path(body.file.removesuffix(".gz")).stem[:128] or None}
        record = await self._transport.call(
            "POST", "/v1/datasets", DatasetRecord, chunks=body.chunks, headers=headers, params=params, file=body.file
        )
        return AsyncDataset(self._transport, record)

    @operation("show_dataset")
    async def get(self, id: str) -> "AsyncDataset":
        """The dataset of this id; raises NotFound."""
        return AsyncDataset(
            self._transport, await self._transport.call("GET", f"/v1/datasets/{in_path('dataset', id)}", DatasetRecord)
        )

    @operation("list_datasets")
    async def named(self, name: str) -> "AsyncDataset":
        """The newest dataset of this name, or the one of this id; raises NotFound, which lists the newest names."""
        names = dict[str, None]()
        async for dataset in self.all():
            if name in (dataset.name, dataset.id):
                return dataset
            names[dataset.name or dataset.id] = None
        detail = f"there is no dataset {name!r}; there are {listed(names)}"
        raise NotFound(404, {"detail": detail}, "")

    @operation("list_datasets")
    async def all(self) -> "AsyncIterator[AsyncDataset]":
        """All datasets, newest first."""
        async for record in self._transport.entries("/v1/datasets", "datasets", DatasetRecord):
            yield AsyncDataset(self._transport, record)


class AsyncDataset(ShownDataset):
    """A set of documents, some of them labeled.

    It never changes; what people say of its documents is a log beside it.
    """

    _transport: AsyncTransport

    @operation("change_dataset")
    async def change(self, **changes: Any) -> None:
        """Change ``name``, ``guidelines``, ``shares`` (as ``{"ana": 1, "ben": 2}``), ``overlap`` (the share of the
        documents that everybody answers) or ``clusters`` (names of some by ``"job-06h0…/3"``), or put it away by
        ``archived=True``; documents and labels stay."""
        self.record = await self._transport.call("PATCH", self._path, DatasetRecord, json=changes, repeatable=True)

    @operation("list_classes")
    async def classes(self) -> list[dict[str, Any]]:
        """The classes as people see them: name, key, description and color of each."""
        return (await self._transport.call("GET", f"{self._path}/classes", _Classes))["classes"]

    @operation("put_classes")
    async def put_classes(self, classes: Iterable[Mapping[str, Any] | Label]) -> list[dict[str, Any]]:
        """Set the classes, in this order, each by its name or by name, key, description and color; returns all classes
        then.
        """
        given = [each if isinstance(each, Mapping) else {"name": each} for each in classes]
        body, path = {"classes": given}, f"{self._path}/classes"
        return (await self._transport.call("PUT", path, _Classes, json=body, repeatable=True))["classes"]

    @operation("change_labels")
    async def relabel(
        self,
        labels: Mapping[str, Label | Sequence[Label] | None],
        *,
        drawn: Mapping[str, str] | None = None,
        name: str | None = None,
        excluded: Mapping[str, Sequence[Label]] | None = None,
        label_kind: str | None = None,
    ) -> "AsyncDataset":
        """Another dataset of the same documents, with some labels changed, by document id; None removes a label.

        ``excluded`` are labels that do not apply. ``label_kind`` "several" makes a dataset of several labels of it,
        with lists of labels, and "single" turns it back where no document has two.
        """
        if not hasattr(labels, "keys"):
            raise InvalidData("labels: give them by document id: {id: label}")
        given = {"drawn": drawn, "not": excluded}
        body: dict[str, Any] = {"labels": dict(labels), **{each: dict(value) for each, value in given.items() if value}}
        body |= {} if label_kind is None else {"label_kind": label_kind}
        record = await self._transport.call(
            "PUT", f"{self._path}/labels", DatasetRecord, json=body, params={"name": name}, repeatable=False
        )
        return AsyncDataset(self._transport, record)

    @operation("annotate")
    async def annotate(
        self,
        document: Any,
        label: Label | Sequence[Label] | None = None,
        *,
        action: str = "label",
        by: str | None = None,
        **more: Any,
    ) -> int:
        """Log a person's answer to a document, a label or the action ``skip`` or ``undo``; returns the number of
        entries then. In a dataset of several labels it is a list of all that apply.

        ``document`` is an id, a suggestion, or a dict with an id, as ``documents`` and ``doubts`` give them.

        A job learns from the log by ``annotations="latest"``.
        """
        return await self.append([annotation_of(document, label, action, by, more)])

    @operation("annotate")
    async def append(self, annotations: Iterable[Mapping[str, Any]]) -> int:
        """Append annotations to the log, each with an id of its own by which it may come twice; the number of entries
        then.
        """
        return await self._logged({"annotations": list(annotations)})

    @operation("annotate")
    async def take_back(self, batch: str) -> int:
        """Take back all annotations of a batch; the number of entries then."""
        return await self._logged({"undo_of": batch})

    async def _logged(self, body: Mapping[str, Any]) -> int:
        path = f"{self._path}/annotations"
        return (await self._transport.call("POST", path, dict[str, int], json=body, repeatable=True))["sequence"]

    @operation("list_annotations")
    async def annotations(self, after: int = 0) -> AsyncIterator[Annotation]:
        """The entries of the log, oldest first."""
        path, params = f"{self._path}/annotations", {"after": after, "limit": 500}
        async for entry in self._transport.entries(path, "annotations", Annotation, params, "after"):
            yield entry

    @operation("summarize_annotations")
    async def annotation_summary(self) -> dict[str, Any]:
        """The state of the log: labels by class, draw and person, and how far people agree."""
        return await self._transport.call("GET", f"{self._path}/annotations/summary", dict[str, Any])

    @operation("list_documents")
    async def documents(self, **params: Any) -> AsyncIterator[dict[str, Any]]:
        """The documents as they were sent, in order.

        ``params`` are those of the call, such as label, contains and model.
        """
        async for document in self._transport.entries(f"{self._path}/documents", "documents", dict[str, Any], params):
            yield document

    @operation("list_documents")
    async def to_pandas(self, **params: Any) -> Any:
        """The documents as a data frame of pandas, a row each, with labels and their authors; with ``model`` also its
        predictions. ``params`` as in ``documents``.
        """
        from pandas import DataFrame

        return DataFrame([row_of(document) async for document in self.documents(**params)])

    @operation("draw_audit")
    async def draw_audit(self, n: int, **more: Any) -> dict[str, Any]:
        """Draw documents to label at random, so that the error of any model can be told with an interval."""
        return await self._transport.call("POST", f"{self._path}/audits", dict[str, Any], json={"n": n, **more})

    @operation("list_audits")
    async def audits(self) -> dict[str, Any]:
        """The audits of the dataset."""
        return await self._transport.call("GET", f"{self._path}/audits", dict[str, Any])

    @operation("show_audit")
    async def audit(self, audit: str, **params: Any) -> dict[str, Any]:
        """An audit and its figures so far, of ``model`` if that is given."""
        return await self._transport.call(
            "GET", f"{self._path}/audits/{in_path('audit', audit)}", dict[str, Any], params=params
        )

    @operation("delete_dataset")
    async def delete(self) -> None:
        """Delete the dataset; raises Conflict while a job needs it."""
        await self._transport.send("DELETE", self._path)
