"""Datasets: sparse documents and their labels, sealed once and shared by whatever is relabeled from them."""

from workers.repositories.datasets.batch import Batch
from workers.repositories.datasets.builder import DatasetBuilder
from workers.repositories.datasets.documents import Documents
from workers.repositories.datasets.repository import Datasets

__all__ = ["Batch", "DatasetBuilder", "Datasets", "Documents"]
