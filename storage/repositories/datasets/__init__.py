"""Datasets: sparse documents and their labels, sealed once. A relabeled dataset shares the documents of another."""

from storage.repositories.datasets.annotations.answers import Answer, NewAnnotation
from storage.repositories.datasets.builder import DatasetBuilder
from storage.repositories.datasets.documents import Documents
from storage.repositories.datasets.files.extra_fields import StoredFields
from storage.repositories.datasets.labels import Batch, ExtraFields
from storage.repositories.datasets.repository import Datasets

__all__ = ["Answer", "Batch", "DatasetBuilder", "Datasets", "Documents", "ExtraFields", "NewAnnotation", "StoredFields"]
