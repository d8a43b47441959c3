"""A batch of documents, some thousands at a time: codecs read it and a dataset takes it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import Rows
from core.documents.votes import Vote
from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from storage.records import Label

MAX_NAMES = 1000
"""Names of the extra fields of a dataset at most."""
LEAVE_OUT = "leave them out by ?extra=ignore, or send fewer"


def refuse(faults: Iterable[Fault]) -> None:
    """Raise InvalidDocuments with the first faults, if there are some."""
    named = list(islice(faults, MAX_FAULTS))
    if named:
        first = named[0]
        raise InvalidDocuments(f"document {first.document}: {first.field}: {first.detail}", named)


class ExtraFields(NamedTuple):
    """Extra fields of consecutive documents."""

    names: Sequence[str]
    """names of the fields, all different"""
    values: Sequence[Sequence[Any]]
    """values of each document by name, as JSON has them; None where it has none; those of the last names may be left
    out"""


class LabelLists(NamedTuple):
    """Labels of consecutive documents that may have several."""

    applied: Sequence[Sequence[Label] | None]
    """all labels of each document; None where they are not known"""
    excluded: Sequence[Sequence[Label] | None]
    """labels that each document is known not to have"""


class Batch(NamedTuple):
    """Consecutive documents of one kind, not validated.

    DatasetBuilder does so. Indices may be out of order within a row.
    """

    rows: Rows
    labels: Sequence[Label | None]
    """label of each row, None for unlabeled; Python strings or integers, not NumPy's"""
    ids: Sequence[str | None] | None = None
    """id of each row; for None, of one row or of all, the position in the dataset is the id"""
    drawn: NDArray[np.int8] | None = None
    """how the label of each row was come by, shape (n_rows,), values of core.documents.drawn.Draw; None where nothing
    is known of any row"""
    fields: ExtraFields | None = None
    """fields of the rows that are kept beside them and not learned from; None where no row has any"""
    label_lists: LabelLists | None = None
    """labels in place of ``labels``, of rows that may have several; None where each has one at most"""
    votes: Sequence[Mapping[str, Vote] | None] | None = None
    """votes about each row by voter; None where nobody voted"""
    weights: NDArray[np.float64] | None = None
    """weight of the label of each row, shape (n_rows,); None where all are 1"""
