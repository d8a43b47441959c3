"""Documents as rows of a table."""

from collections.abc import Iterable, Iterator, Sequence

from app.documents.service import Page
from app.http.answers.tables import Column, Row, columns_beside
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
        _labels("label", [label for label, _ in dataset.classes]),
        Column("by", "text"),
        Column("drawn", "text"),
        Column("skipped", "truth"),
        Column("people", "text"),
        Column("notes", "text"),
        Column("flagged", "truth"),
    ]
    if version is not None:
        own += [_labels("predicted", version.classes), Column("probability", "number"), Column("score", "number")]
    return columns_beside(own, dataset.fields, "fields.")


def document_rows(dataset: Dataset, columns: Sequence[Column], pages: Iterable[Page]) -> Iterator[Row]:
    """The rows of all pages."""
    own = [column.name for column in columns[: len(columns) - len(dataset.fields)]]
    for page in pages:
        for document in page["documents"]:
            yield (
                *(document.get(name) for name in own),
                *(document.get("fields", {}).get(name) for name in dataset.fields),
            )


def _labels(name: str, labels: Sequence[Label]) -> Column:
    return Column(name, "integer" if labels and isinstance(labels[0], int) else "text")
