"""The loops of core.engine.csr_loops over rows that store every feature: all their values, one row after another.

Number j of a row is multiplied in lane j mod WIDTH. The sum of the lanes, then the bias, then what is left over after
the last whole lanes are added up. Four rows at a time read a vector once. Each of them is added to the sums in its
turn, so it does not matter which rows come together.
"""

from core.engine.csr_loops import Values, side_of
from core.numerics.compiled import compiled
from core.numerics.elementary import Vector
from core.numerics.lanes import plus, put, spread, take, times, total, widen
from core.numerics.width import WIDTH


@compiled
def _row_score(values: Values, first: int, vector: Vector, sums: float) -> float:
    """The product of the row that begins at ``first`` and a vector, bias included, given the ``sums`` of its whole
    lanes.
    """
    n_features = len(vector) - 1
    score: float = sums + vector[n_features]
    for j in range(n_features - n_features % WIDTH, n_features):
        score += values[first + j] * vector[j]
    return score


@compiled
def _add_rest(values: Values, first: int, weight: float, out: Vector) -> None:
    """Add the rest of a row, after the last whole lanes, and the bias to ``out``."""
    n_features = len(out) - 1
    for j in range(n_features - n_features % WIDTH, n_features):
        out[j] += values[first + j] * weight
    out[n_features] += weight


@compiled
def _score(values: Values, row: int, vector: Vector) -> float:
    """The product of a row and a vector, bias included."""
    n_features = len(vector) - 1
    first, lanes = row * n_features, spread(0.0)
    for j in range(0, n_features - n_features % WIDTH, WIDTH):
        lanes = plus(lanes, times(widen(values, first + j), take(vector, j)))
    return _row_score(values, first, vector, total(lanes))


@compiled
def _add(values: Values, row: int, weight: float, out: Vector) -> None:
    """``out += weight · row``, bias included."""
    n_features = len(out) - 1
    first, weights = row * n_features, spread(weight)
    for j in range(0, n_features - n_features % WIDTH, WIDTH):
        put(out, j, plus(take(out, j), times(weights, widen(values, first + j))))
    _add_rest(values, first, weight, out)


@compiled
def _product_of_four(
    values: Values,
    rows: tuple[int, int, int, int],
    n_rows: int,
    vector: Vector,
    weights: Vector,
    scores: Vector,
    out: Vector,
) -> None:
    """``scores = X p`` and ``out += Xᵀ(weights ∘ scores)`` of ``n_rows`` rows, to the bits of one after another; the
    others of four count 0 times.
    """
    n_features = len(vector) - 1
    whole = n_features - n_features % WIDTH
    one, two, three, four = rows[0] * n_features, rows[1] * n_features, rows[2] * n_features, rows[3] * n_features
    lanes_one, lanes_two, lanes_three, lanes_four = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    for j in range(0, whole, WIDTH):
        along = take(vector, j)
        lanes_one = plus(lanes_one, times(widen(values, one + j), along))
        lanes_two = plus(lanes_two, times(widen(values, two + j), along))
        lanes_three = plus(lanes_three, times(widen(values, three + j), along))
        lanes_four = plus(lanes_four, times(widen(values, four + j), along))
    scores[rows[0]] = _row_score(values, one, vector, total(lanes_one))
    scores[rows[1]] = _row_score(values, two, vector, total(lanes_two))
    scores[rows[2]] = _row_score(values, three, vector, total(lanes_three))
    scores[rows[3]] = _row_score(values, four, vector, total(lanes_four))
    first = weights[rows[0]] * scores[rows[0]]
    second = weights[rows[1]] * scores[rows[1]] if n_rows > 1 else 0.0
    third = weights[rows[2]] * scores[rows[2]] if n_rows > 2 else 0.0
    fourth = weights[rows[3]] * scores[rows[3]] if n_rows > 3 else 0.0
    factor_one, factor_two, factor_three, factor_four = spread(first), spread(second), spread(third), spread(fourth)
    for j in range(0, whole, WIDTH):
        sums = plus(take(out, j), times(factor_one, widen(values, one + j)))
        sums = plus(sums, times(factor_two, widen(values, two + j)))
        sums = plus(sums, times(factor_three, widen(values, three + j)))
        put(out, j, plus(sums, times(factor_four, widen(values, four + j))))
    _add_rest(values, one, first, out)
    _add_rest(values, two, second, out)
    _add_rest(values, three, third, out)
    _add_rest(values, four, fourth, out)


@compiled
def product_rows(
    values: Values, start: int, stop: int, vector: Vector, weights: Vector, scores: Vector, out: Vector
) -> None:
    """See core.engine.csr_loops."""
    one, two, three, four, n_waiting = start, start, start, start, 0
    for i in range(start, stop):
        if weights[i] != 0.0:
            one = i if n_waiting == 0 else one
            two = i if n_waiting <= 1 else two
            three = i if n_waiting <= 2 else three
            four = i
            n_waiting += 1
        if n_waiting == 4 or (n_waiting and i == stop - 1):
            _product_of_four(values, (one, two, three, four), n_waiting, vector, weights, scores, out)
            n_waiting = 0


@compiled
def score_rows(values: Values, start: int, stop: int, vector: Vector, skipped: Vector, scores: Vector) -> None:
    """See core.engine.csr_loops."""
    for i in range(start, stop):
        if skipped[i] == 0.0:
            scores[i] = _score(values, i, vector)


@compiled
def adjoint_rows(values: Values, start: int, stop: int, weights: Vector, out: Vector) -> None:
    """See core.engine.csr_loops."""
    for i in range(start, stop):
        if weights[i] != 0.0:
            _add(values, i, weights[i], out)


@compiled
def cut_rows(
    values: Values, start: int, stop: int, vector: Vector, labels: Vector, weights: Vector, scores: Vector, out: Vector
) -> None:
    """See core.engine.csr_loops."""
    for i in range(start, stop):
        scores[i] = _score(values, i, vector)
        side = side_of(labels[i], scores[i])
        if side * scores[i] < 1.0:
            _add(values, i, weights[i] * side, out)
