"""Documents as rows of a table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from app.codecs.tables.cells import NONE_APPLIES, VOTE
from app.documents.service import Page
from app.http.answers import Column, Row, columns_beside
from core.documents.kinds import field_of
from storage.records import Dataset, Label, Version

_CONTENTS = {"text": ["text"], "features": ["features"], "vectors": ["indices", "values"]}
"""Fields of the documents of one kind; numbers stand in them as JSON."""


def document_columns(dataset: Dataset, version: Version | None) -> list[Column]:
    """The columns; a version adds the columns of its prediction."""
    fields = {
        name: None
        for part in dataset.parts
        for name in (_CONTENTS["vectors"] if part.name == "indices" else [field_of(part.name)])
    }
    contents = [Column(name, "text") for name in (fields or _CONTENTS[dataset.kind])]
    own = [
        Column("id", "text"),
        *contents,
        *_labels(dataset),
        Column("by", "text"),
        Column("drawn", "text"),
        Column("skipped", "truth"),
        Column("people", "text"),
        Column("notes", "text"),
        Column("flagged", "truth"),
    ]
    if version is not None:
        own += [Column("predicted", _kind(version.classes)), Column("probability", "number"), Column("score", "number")]
    return columns_beside(own, dataset.fields, "fields.")


def document_rows(
    dataset: Dataset, columns: Sequence[Column], pages: Iterable[Page], separator: str | None
) -> Iterator[Row]:
    """The rows of all pages; lists of labels are texts with the separator between them, if one is given."""
    own = [column.name for column in columns[: len(columns) - len(dataset.fields)]]
    for page in pages:
        for document in page["documents"]:
            votes = {f"{VOTE}{voter}": _vote(vote) for voter, vote in document.get("votes", {}).items()}
            cells = {**document, **votes}
            if separator is not None and dataset.label_kind == "several":
                cells |= {"labels": _joined(document["labels"], separator, NONE_APPLIES)}
                cells |= {"not": _joined(document["not"], separator, None)}
            yield (
                *(cells.get(name) for name in own),
                *(document.get("fields", {}).get(name) for name in dataset.fields),
            )


def _labels(dataset: Dataset) -> list[Column]:
    """The columns of labels, votes and weights."""
    kind = _kind([label for label, _ in dataset.classes])
    labels = [Column("label", kind)]
    if dataset.label_kind == "several":
        labels = [Column(name, "integers" if kind == "integer" else "texts") for name in ("labels", "not")]
    weight = [Column("weight", "number")] if "weights" in dataset.files else []
    return [*labels, *weight, *(Column(f"{VOTE}{voter}", "text") for voter in dataset.voters)]


def _kind(labels: Sequence[Label]) -> Literal["integer", "text"]:
    return "integer" if labels and isinstance(labels[0], int) else "text"


def _vote(vote: Any) -> Any:
    """The cell of a vote: a class, or an object of JSON, also for a class that begins like one."""
    return {vote: 1.0} if isinstance(vote, str) and vote.startswith("{") else vote


def _joined(labels: list[Label] | None, separator: str, nothing: str | None) -> str | None:
    return None if labels is None else separator.join(map(str, labels)) or nothing
