"""Annotations as people give them."""

from datetime import UTC, datetime
from typing import Any

from storage.repositories.datasets import Datasets, NewAnnotation


def given(id: str, document: str, label: Any = None, action: Any = "label", **fields: Any) -> NewAnnotation:
    kind = "labels" if isinstance(label, tuple) else "label"
    return NewAnnotation(id=id, document=document, action=action, at=datetime.now(UTC), **fields, **{kind: label})


def labels(datasets: Datasets, dataset: str, annotations: int | None) -> list[Any]:
    documents = datasets.open(dataset, annotations)
    return [None if index < 0 else documents.classes[index] for index in documents.class_indices.tolist()]
