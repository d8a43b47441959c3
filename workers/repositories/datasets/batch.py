"""What a door hands in, some thousands of documents at a time."""

from collections.abc import Sequence
from typing import NamedTuple

from core.documents.kinds import Rows
from workers.contract import Label


class Batch(NamedTuple):
    """Consecutive documents of one kind. Indices may be out of order within a row; everything else is checked by who takes the batch."""

    rows: Rows
    labels: Sequence[Label | None]
    """one a row; None: unlabeled. Python strings or integers (numpy arrays: ``tolist()`` them)"""
    ids: Sequence[str | None] | None = None
    """one a row, or None: each document's id is its position in the dataset, as is that of one whose own id is None"""
