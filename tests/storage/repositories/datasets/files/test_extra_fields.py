"""Extra fields in files: the same bytes however documents come in batches, and bounds."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from storage.repositories.datasets import ExtraFields, StoredFields
from storage.repositories.datasets.files.extra_fields import INDPTR, LINES, ExtraFieldsWriter
from storage.repositories.datasets.files.npy import open_array
from storage.repositories.datasets.labels import MAX_NAMES

GIVEN: list[dict[str, Any]] = [{}, {"a": 1, "b": "x\n"}, {}, {"c": [1, {"d": None}]}, {"b": "", "c": True}, {}]


def written(folder: Path, sizes: Sequence[int]) -> tuple[StoredFields, dict[str, bytes]]:
    folder.mkdir()
    with ExitStack() as stack:
        writer = ExtraFieldsWriter(folder, stack)
        start = 0
        for size in sizes:
            rows = GIVEN[start : start + size]
            names = sorted({name for row in rows for name in row}, key="abc".index)
            # the names of a batch in any order
            names = names[::-1] if start else names
            writer.append(
                ExtraFields(names, [[row.get(name) for name in names] for row in rows]) if names else None, len(rows)
            )
            start += size
        files = writer.finish()
    assert writer.n_bytes >= sum(path.stat().st_size for path in files.values()) - 256
    lines = TextRows(open_array(files[INDPTR]), open_array(files[LINES]))
    return StoredFields(writer.names, lines), {content: path.read_bytes() for content, path in files.items()}


@pytest.mark.parametrize("sizes", [[6], [1] * 6, [2, 1, 3], [3, 3]])
def test_fields_are_those_of_their_documents(tmp_path: Path, sizes: list[int]) -> None:
    stored, _ = written(tmp_path / "x", sizes)
    assert list(stored.taken(np.arange(6))) == GIVEN
    assert list(stored.taken(np.array([4, 1]))) == [GIVEN[4], GIVEN[1]]
    assert stored.lengths(np.array([0])).tolist() == [3]


def test_bytes_do_not_depend_on_the_batches_where_names_come_in_the_same_order(tmp_path: Path) -> None:
    assert written(tmp_path / "one", [3, 3])[1][INDPTR] == written(tmp_path / "two", [2, 1, 3])[1][INDPTR]


def test_without_fields_there_is_no_file(tmp_path: Path) -> None:
    with ExitStack() as stack:
        writer = ExtraFieldsWriter(tmp_path, stack)
        writer.append(None, 5)
        assert (writer.finish(), writer.names, writer.n_bytes) == ({}, [], 0)
    assert list(StoredFields([], None).taken(np.arange(2))) == [{}, {}]
    assert not StoredFields([], None)


@pytest.mark.parametrize(
    ("names", "error", "detail"),
    [
        ([f"n{k}" for k in range(MAX_NAMES + 1)], LimitExceeded, "leave them out by \\?extra=ignore"),
        (["x" * 257], InvalidDocuments, "must have 1 to 256 characters, not 257"),
        ([""], InvalidDocuments, "must have 1 to 256 characters, not 0"),
        (["\ud800"], InvalidDocuments, "is not valid Unicode"),
    ],
    ids=["many", "long", "empty", "half a character"],
)
def test_names_are_bounded(tmp_path: Path, names: list[str], error: type[Exception], detail: str) -> None:
    with ExitStack() as stack, pytest.raises(error, match=detail):
        ExtraFieldsWriter(tmp_path, stack).append(ExtraFields(names, [["v"] * len(names)]), 1)
