"""Datasets, jobs and models in both clients: their records, the requests about them, their display in notebooks."""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from os.path import isfile
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from halfmoon.columns import Choice
from halfmoon.connection import JSON
from halfmoon.display import pairs
from halfmoon.encode import body_of, held
from halfmoon.errors import InvalidData
from halfmoon.records import (
    DatasetRecord,
    JobRecord,
    Label,
    ModelRecord,
    Progress,
    Suggestion,
)
from halfmoon.values import id_of, in_path, is_missing

FINAL = ("succeeded", "failed", "cancelled")
LABEL_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}


class Suggestions(Struct):
    """Documents to label next, or to ask a voter about."""

    suggestions: list[Suggestion]
    asking: dict[str, Any] | None = None
    """What more answers of the voter are worth."""


class Shown:
    """A thing of the service with its record, as the last answer described it."""

    def __init__(self, transport: Any, record: Any) -> None:
        self._transport = transport
        self.record = record

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.record.id)


class ShownDataset(Shown):
    """A dataset, as the service described it in its last answer."""

    record: DatasetRecord

    @property
    def name(self) -> str | None:
        """Name of the dataset; None if nobody gave one."""
        return self.record.name

    @property
    def warnings(self) -> list[str]:
        """Warnings of the service about the documents."""
        return self.record.warnings

    @property
    def _path(self) -> str:
        return f"/v1/datasets/{self.id}"

    def __len__(self) -> int:
        return self.record.n_documents

    def __repr__(self) -> str:
        return f"<Dataset {self.name or self.id}: {self.record.n_documents} documents, {self.record.n_labeled} labeled>"

    def _repr_html_(self) -> str:
        shown = {"documents": self.record.n_documents, "labeled": self.record.n_labeled, **self.record.classes}
        warnings = {f"warning {number}": text for number, text in enumerate(self.warnings, 1)}
        return pairs(f"Dataset {self.id}", shown | warnings)


def is_dataset(data: Any) -> bool:
    """Whether the data are a dataset of the service, or the id of one."""
    return isinstance(data, ShownDataset) or (isinstance(data, str) and data.startswith("ds-"))


def id_of_dataset(data: Any) -> str:
    """The id of a dataset, given as itself or by its id; raises InvalidData for anything else."""
    if isinstance(data, ShownDataset):
        return data.id
    if isinstance(data, str):
        return data
    raise InvalidData(f"a dataset is needed here, or its id, not {type(data).__name__}: data = hm.datasets.create(…)")


def annotation_of(
    document: Any, label: Label | Sequence[Label] | None, action: str, by: str | None, more: Any
) -> dict[str, Any]:
    """An entry for the log, with an id of its own; raises InvalidData."""
    if action == "label" and label is None:
        raise InvalidData("annotate: give the label, or action='skip'")
    given: dict[str, Any] = (
        {"label": label} if isinstance(label, str) or not isinstance(label, Iterable) else {"labels": list(label)}
    )
    entry = {"id": str(uuid.uuid4()), "document": _name(document), "action": action, **given, "by": by, **more}
    return {key: value for key, value in entry.items() if value is not None}


def row_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a row of a table, its extra fields as columns of their own."""
    own = {name: value for name, value in document.items() if name != "fields"}
    return {**document.get("fields", {}), **own}


def _name(document: Any) -> str:
    if isinstance(document, Mapping) and "id" in document:
        return str(document["id"])
    named = document.id if isinstance(document, Suggestion) else id_of(document)
    if not named or isinstance(document, Mapping | list | tuple):
        raise InvalidData(f"annotate: {document!r:.60} names no document; give its id, or a suggestion")
    return str(named)


class ShownJob(Shown):
    """A job as it was last seen."""

    record: JobRecord
    """The job as it was last seen."""

    @property
    def state(self) -> str:
        """State, as it was last seen: queued, running, cancelling, cancelled, succeeded, failed."""
        return self.record.state

    @property
    def progress(self) -> Progress:
        """Progress, as it was last seen."""
        return self.record.progress

    @property
    def report(self) -> Mapping[str, Any]:
        """Estimates, trials and choices of the training; empty until the job has succeeded."""
        return self.record.report or {}

    @property
    def _path(self) -> str:
        return f"/v1/jobs/{self.id}"

    def _labels(self, fields: bool, separator: str | None = None) -> str:
        query = {"include": "fields" if fields else None, "separator": separator}
        return f"{self._path}/labels?{urlencode({name: value for name, value in query.items() if value is not None})}"

    def _heard(self, event: str, line: str) -> Progress | None:
        """Follow a line of the stream of events; the progress that it tells of, if it does."""
        name, _, value = line.partition(": ")
        if line.startswith(":"):
            return self.progress
        if name != "data" or event not in ("state", "progress"):
            return None
        if event == "state":
            self.record = msgspec.json.decode(value, type=JobRecord)
            return None
        self.record = msgspec.structs.replace(self.record, progress=msgspec.json.decode(value, type=Progress))
        return self.progress

    def __repr__(self) -> str:
        done = "" if self.state in FINAL else f" {self.progress.fraction:.0%} {self.progress.phase}"
        return f"<Job {self.id}: {self.state}{done}>"

    def _repr_html_(self) -> str:
        record = self.record
        shown = {
            "state": record.state,
            "done": f"{record.progress.fraction:.0%}",
            "model": record.model_name,
            "algorithm": record.algorithm,
            "summary": " ".join(self.report.get("summary") or []) or record.progress.phase,
        }
        return pairs(f"Job {self.id}", shown)


def past(deadline: float | None) -> bool:
    """Whether ``time.monotonic()`` has reached the deadline."""
    return deadline is not None and time.monotonic() >= deadline


class ModelReference:
    """A model by the version that it serves, an alias of it, or one of its versions."""

    def __init__(self, reference: str, number: int | None = None) -> None:
        self.reference = reference
        self.number_given = number
        self.name, _, self._alias = reference.partition("@")
        self._path = f"/v1/models/{reference}" + ("" if number is None else f"/versions/{number}")

    def _number_in(self, record: ModelRecord) -> int:
        """Number of the version to which the reference refers; raises InvalidData."""
        if not self._alias:
            return record.served
        if self._alias not in record.aliases:
            raise InvalidData(
                f"model {self.name!r} has no alias {self._alias!r}; it has {', '.join(record.aliases) or 'none'}"
            )
        return record.aliases[self._alias]

    def __repr__(self) -> str:
        return f"<Model {self.reference}{'' if self.number_given is None else f', version {self.number_given}'}>"


def reference_of(reference: Any) -> tuple[str, int | None]:
    """A model by its name, and the number of a version; raises InvalidData."""
    name, number = reference if isinstance(reference, tuple) and len(reference) == 2 else (reference, None)
    if number is None:
        return in_path("model", name), None
    if not hasattr(number, "__index__") or "@" in str(name):
        raise InvalidData(
            f"models[{name!r}, {number!r}]: a version is models['news', 3] by its number, or models['news@live'] "
            "by an alias"
        )
    return in_path("model", name), int(number)


def documents_sent(documents: Any, choice: Choice, reference: str) -> dict[str, Any]:
    """The fields of a request for predictions of documents; raises InvalidData."""
    if isinstance(documents, ShownDataset):
        raise InvalidData(
            f"a dataset is stored already: its documents(model={reference!r}) have what is predicted of them"
        )
    if isinstance(documents, str) and isfile(documents):
        raise InvalidData(
            f"predict: there is a file {documents!r}, and a text is a document; give pathlib.Path({documents!r}), or "
            f"the text in a list: [{documents!r}]"
        )
    if isinstance(documents, list | tuple) or getattr(documents, "ndim", 0) == 1:
        for number, document in enumerate(documents, 1):
            if document is None or is_missing(document):
                raise InvalidData(
                    f"predict: document number {number} is {document}, no text; leave it out, or send an empty text: ''"
                )
    sent = _held([documents] if isinstance(documents, str) else documents, choice)
    # texts that are here need not come back
    return sent if texts_in(documents, None) else sent | {"params": {**sent["params"], "include": "text"}}


def texts_in(documents: Any, name: str | None) -> list[str | None] | None:
    """The texts of documents in a list, of dicts by the name of their text; None of other data."""
    given = [documents] if isinstance(documents, str) else documents
    if not isinstance(given, list | tuple):
        return None
    return [each.get(name or "text") if isinstance(each, Mapping) else each for each in given]


def _held(documents: Any, choice: Choice) -> dict[str, Any]:
    body = body_of(documents, choice)
    content, headers = held(body)
    return {"content": content, "headers": headers, "params": body.query, "file": body.file, "repeatable": True}


def evaluation_sent(data: Any, choice: Choice, held_out: bool) -> dict[str, Any]:
    """The fields of a request for an evaluation on a dataset or other data; raises InvalidData."""
    if is_dataset(data):
        if choice != Choice():
            raise InvalidData("evaluate: text, label, features and extra are for other data; a dataset has been read")
        content = msgspec.json.encode({"dataset": id_of_dataset(data), "held_out": held_out})
        return {"content": content, "headers": JSON, "repeatable": True}
    if held_out:
        raise InvalidData("evaluate: held_out needs a dataset; whether other documents were trained on is unknown")
    return _held(data, choice)


def explanation_asked(
    documents: Sequence[Any] | Mapping[str, Any] | None, n: int, label: Label | None
) -> dict[str, Any]:
    """The fields of the body of a request for an explanation; raises InvalidData."""
    fields: dict[str, Any] = {"n": n} | ({} if label is None else {"class": label})
    if isinstance(documents, ShownDataset) or hasattr(documents, "columns"):
        raise InvalidData(f"explain: give a list of texts or dicts, not {type(documents).__name__}")
    if documents is not None:
        fields["documents"] = [
            {"text": each} if isinstance(each, str) else each
            for each in ([documents] if isinstance(documents, str | Mapping) else documents)
        ]
    return fields
