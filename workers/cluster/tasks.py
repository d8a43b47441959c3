"""What the workers of a cluster do: pure functions of shards and vectors, so that what a dead worker had is computed again elsewhere."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import Adjoint, Cut, Product, Scores, Vector
from workers.cluster.shards import OpenShard

Kind = Literal["product", "scores", "adjoint", "cut"]


class Answer(NamedTuple):
    """What a pass over a shard gives."""

    scores: list[Vector]
    """for each right-hand side those of the rows that were read, in order"""
    sums: NDArray[np.float64]
    """shape (n_parts, n_right_hand_sides, n_columns + 1)"""


class FewRows(NamedTuple):
    """A vector of rows of which most are 0, as it is sent."""

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


def answer(shard: OpenShard, kind: Kind, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """One pass over a shard. ``vectors`` are of its columns and the bias; ``sent`` the vectors of rows of each right-hand side, one after the other.

    The sums of each part are the ones of core.engine.passes, to the bit.
    """
    rows = [received(each) for each in sent]
    scores = [np.zeros(shard.shard.n_rows) for _ in vectors]
    sums = np.zeros((0 if kind == "scores" else len(shard.passes), len(vectors) or len(sent), shard.shard.n_columns + 1))
    with shard.lock:
        for number, (passes, (start, stop)) in enumerate(zip(shard.passes, shard.shard.parts, strict=True)):
            own, part = [each[start:stop] for each in rows], [each[start:stop] for each in scores]
            match kind:
                case "product":
                    sums[number] = passes.products([Product(*given) for given in zip(vectors, own, part, strict=True)])
                case "cut":
                    sums[number] = passes.cuts([Cut(*given) for given in zip(vectors, own[::2], own[1::2], part, strict=True)])
                case "scores":
                    passes.scores(Scores(vectors[0], own[0], part[0]))
                case "adjoint":
                    passes.adjoints([Adjoint(*given) for given in zip(own, sums[number], strict=True)])
    return Answer(_read(kind, rows, scores), sums)


def _read(kind: Kind, rows: Sequence[Vector], scores: list[Vector]) -> list[Vector]:
    """The scores of those rows that a pass reads."""
    if kind in ("cut", "adjoint"):
        return scores
    chosen = [weights != 0 for weights in rows] if kind == "product" else [skipped == 0 for skipped in rows]
    return [each if mask.all() else each[mask] for each, mask in zip(scores, chosen, strict=True)]


def scores_of(found: Answer) -> list[Vector]:
    """The scores alone: what the job reads of an answer."""
    return found.scores


def scored(shard: OpenShard, vectors: Sequence[Vector], skipped: Sent) -> list[Vector]:
    """A pass that has scores alone, in one task."""
    return answer(shard, "scores", vectors, skipped).scores


def added(total: NDArray[np.float64] | None, found: Answer, shard: OpenShard, length: int) -> NDArray[np.float64]:
    """The sums of all parts up to this shard's, shape (n_right_hand_sides, length), added in the order of the parts."""
    places = np.append(shard.columns.astype(np.int64), length - 1)
    total = np.zeros((found.sums.shape[1], length)) if total is None else total.copy()
    for sums in found.sums:
        total[:, places] += sums
    return total
