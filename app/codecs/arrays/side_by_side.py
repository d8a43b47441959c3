"""Two streams of rows of the same documents as one stream of documents of several parts, whatever the lengths of their
slices.
"""

from collections.abc import Iterator

from core.documents.kinds import PartRows, Rows, parts_of


def side_by_side(one: Iterator[Rows], other: Iterator[Rows]) -> Iterator[Rows]:
    """The documents, each with the parts of both. Slices without rows are passed on: after each the caller may stop.

    Both streams are read to their ends. They must have equally many rows in all.
    """
    rows: Rows | None = None
    for left in other:
        if not left.n_rows:
            yield left
        while left.n_rows:
            while rows is None or not rows.n_rows:
                rows = next(one)
                if not rows.n_rows:
                    yield rows
            count = min(rows.n_rows, left.n_rows)
            yield PartRows({**parts_of(rows.between(0, count)), **parts_of(left.between(0, count))})
            rows, left = rows.between(count, rows.n_rows), left.between(count, left.n_rows)
    yield from one
