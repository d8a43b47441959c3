"""Datasets: sparse documents and their labels, sealed once and shared by whatever is relabeled from them."""

from workers.datasets.batch import Batch
from workers.datasets.builder import DatasetBuilder
from workers.datasets.documents import Documents
from workers.datasets.repository import Datasets

__all__ = ["Batch", "DatasetBuilder", "Datasets", "Documents"]
