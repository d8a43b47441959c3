"""The tasks of the workers of a cluster: pure functions of shards and vectors.

So a task of a dead worker is done again elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores, Vector
from workers.cluster.shards import OpenShard


class Answer(NamedTuple):
    """The answer of a pass over a shard."""

    scores: list[Vector]
    """for each right-hand side the scores of the rows that were read, in order"""
    sums: NDArray[np.float64]
    """shape (n_parts, n_right_hand_sides, n_columns + 1)"""


class FewRows(NamedTuple):
    """A vector of rows, mostly 0, as it is sent."""

    positions: NDArray[np.uint32]
    values: Vector
    n_rows: int


Sent = Vector | FewRows


def packed(rows: Vector) -> Sent:
    """A vector of rows in the fewest bytes, as a copy: the job may change its own before it is sent."""
    positions = np.flatnonzero(rows)
    whole = len(positions) * (np.dtype(np.uint32).itemsize + rows.itemsize) >= rows.nbytes
    return rows.copy() if whole else FewRows(positions.astype(np.uint32), rows[positions], len(rows))


def received(rows: Sent) -> Vector:
    """The vector that was packed. As a task: kept on a worker for the passes in which it does not change."""
    if not isinstance(rows, FewRows):
        return rows
    found = np.zeros(rows.n_rows)
    found[rows.positions] = rows.values
    return found


def product(shard: OpenShard, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """Products of several right-hand sides; ``sent`` has the weights of the rows.

    ``vectors`` are of the columns of the shard and the bias, here and in the others. The sums of each part have the
    bits of core.engine.passes.
    """
    weights, found = [received(each) for each in sent], _empty(shard, len(vectors))
    with shard.lock:
        for number, passes, rows in _parts(shard):
            columns = zip(vectors, _within(weights, rows), _within(found.scores, rows), strict=True)
            found.sums[number] = passes.products([Product(*each) for each in columns])
    scores = [_chosen(each, own != 0) for each, own in zip(found.scores, weights, strict=True)]
    return found._replace(scores=scores)


def cut(shard: OpenShard, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """Cuts of several right-hand sides; ``sent`` has the labels and the weights of each in turn."""
    rows_of, found = [received(each) for each in sent], _empty(shard, len(vectors))
    with shard.lock:
        for number, passes, rows in _parts(shard):
            labels, weights = _within(rows_of[::2], rows), _within(rows_of[1::2], rows)
            columns = zip(vectors, labels, weights, _within(found.scores, rows), strict=True)
            found.sums[number] = passes.cuts([Cut(*each) for each in columns])
    return found


def adjoint(shard: OpenShard, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """Adjoints of several weights of the rows; there are no ``vectors``."""
    weights, found = [received(each) for each in sent], _empty(shard, len(sent))
    with shard.lock:
        for number, passes, rows in _parts(shard):
            own = zip(_within(weights, rows), found.sums[number], strict=True)
            passes.adjoints([Adjoint(*each) for each in own])
    return found._replace(scores=[])


def scores(shard: OpenShard, vectors: Sequence[Vector], sent: Sent) -> list[Vector]:
    """Scores by one vector alone, on the rows that ``sent`` does not skip."""
    skipped, found = received(sent), np.zeros(shard.shard.n_rows)
    with shard.lock:
        for _, passes, rows in _parts(shard):
            passes.scores(Scores(vectors[0], skipped[rows], found[rows]))
    return [_chosen(found, skipped == 0)]


def _parts(shard: OpenShard) -> Iterator[tuple[int, Passes, slice]]:
    """The parts of a shard, with their rows."""
    for number, (passes, part) in enumerate(zip(shard.passes, shard.shard.parts, strict=True)):
        yield number, passes, slice(*part)


def _empty(shard: OpenShard, n_right_hand_sides: int) -> Answer:
    sums = np.zeros((len(shard.passes), n_right_hand_sides, shard.shard.n_columns + 1))
    return Answer([np.zeros(shard.shard.n_rows) for _ in range(n_right_hand_sides)], sums)


def _within(vectors: Sequence[Vector], rows: slice) -> list[Vector]:
    return [each[rows] for each in vectors]


def _chosen(found: Vector, mask: NDArray[np.bool_]) -> Vector:
    """The scores of the rows that a pass reads."""
    return found if mask.all() else found[mask]


def scores_of(found: Answer) -> list[Vector]:
    """The scores alone: the job reads nothing else of an answer."""
    return found.scores


def added(total: NDArray[np.float64] | None, found: Answer, shard: OpenShard, length: int) -> NDArray[np.float64]:
    """The sums of all parts up to this shard's, shape (n_right_hand_sides, length), added in the order of the parts."""
    places = np.append(shard.columns.astype(np.int64), length - 1)
    total = np.zeros((found.sums.shape[1], length)) if total is None else total.copy()
    for sums in found.sums:
        total[:, places] += sums
    return total
