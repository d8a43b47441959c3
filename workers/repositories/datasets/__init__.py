"""Datasets: sparse documents and their labels, sealed once. A relabeled dataset shares the documents of another."""

from workers.repositories.datasets.annotations.entries import NewAnnotation
from workers.repositories.datasets.batch import Batch, ExtraFields
from workers.repositories.datasets.builder import DatasetBuilder
from workers.repositories.datasets.documents import Documents
from workers.repositories.datasets.files.extra_fields import StoredFields
from workers.repositories.datasets.repository import Datasets

__all__ = ["Batch", "DatasetBuilder", "Datasets", "Documents", "ExtraFields", "NewAnnotation", "StoredFields"]
