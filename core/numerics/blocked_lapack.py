"""Dense linear algebra for core.optimizers.interior_point: LAPACK and BLAS on arrays in C order, in pieces.

What takes long is a generator that pauses every ``_WORK`` multiplications or more often, and returns its answer. The transpose of an array in C order
is one in Fortran's order, so that whole arrays are not copied.
"""

import math
from collections.abc import Callable, Generator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
T = TypeVar("T")

_WORK = 1e9
"""multiplications between two pauses: about a twentieth of a second on one current core; with twice as many nothing is faster"""
_PANEL = 1024
"""columns that LAPACK factors at once: narrower panels take longer together (measured: a tenth more than all at once, and 256 a fifth)"""
_TOUCH = 100
"""multiplications in the time of which a number is read and written, in memory that may be new"""
_POWERS = 20
_BLOCK = 256
"""rows of a triangular factor that are multiplied at once: the zeros beside fewer rows are fewer"""
_LANCZOS = (8, 60)
"""fewest and most steps of the method of Lanczos: what it finds first need not be the end of the spectrum"""
_SURE = 0.02
"""how well the least eigenvalue is known when the method of Lanczos ends: to this, or to this share of itself if it is beyond 1"""
_RETREAT = 0.8
_SHORTEST = 1e-7


class Indefinite(Exception):
    """A matrix that had to be positive definite is not, to the precision of its numbers."""


def cholesky(matrix: Matrix) -> Generator[None, None, Matrix]:
    """The lower factor L of a symmetric matrix, of which the lower triangle is read and which becomes L; raises Indefinite.

    Panel by panel, each brought up to date by the columns left of it when its turn comes.
    """
    for start in range(0, len(matrix), _PANEL):
        stop = min(start + _PANEL, len(matrix))
        own, done = slice(start, stop), np.ascontiguousarray(matrix[start:stop, :start])
        corner = matrix[own, own].T
        if start:
            corner = blas.dsyrk(-1.0, done.T, 1.0, corner, trans=1, lower=0)
        factor, info = lapack.dpotrf(corner, lower=0, clean=1, overwrite_a=1)
        if info or np.isnan(factor[-1, -1]):  # numbers that are none spread to the last, and LAPACK may not tell
            raise Indefinite
        matrix[own, own], matrix[own, stop:] = factor.T, 0.0
        yield
        for part in slices(len(matrix) - stop, _PANEL * (start + _PANEL / 2)):
            rows = matrix[stop + part.start : stop + part.stop]
            right = rows[:, own] - rows[:, :start] @ done.T if start else rows[:, own]
            rows[:, own] = blas.dtrsm(1.0, factor, right.T, lower=0, trans_a=1).T
            yield
    return matrix


def solved(factor: Matrix, right: Vector, *, transposed: bool = False) -> Vector:
    """``L⁻¹ right``, or ``L⁻ᵀ right``."""
    if not len(factor):
        return right
    return np.asarray(blas.dtrsv(factor.T, right, lower=0, trans=0 if transposed else 1))


def inverse(factor: Matrix) -> Generator[None, None, Matrix]:
    """``(L Lᵀ)⁻¹``, both triangles: the product of L⁻¹, in strips of columns, with itself."""
    n = len(factor)
    half, whole = np.zeros((n, n)), np.empty((n, n))
    for part in slices(n, n**2 / 2):
        unit = np.eye(n - part.start, part.stop - part.start, order="F")
        half[part.start :, part] = blas.dtrsm(1.0, factor[part.start :, part.start :].T, unit, lower=0, trans_a=1, overwrite_b=1)
        yield
    for part in slices(n, n**2 / 2):
        whole[part, : part.stop] = half[part.start :, part].T @ half[part.start :, : part.stop]
        whole[: part.start, part] = whole[part, : part.start].T
        yield
    return whole


def divide(rows: Matrix, factor: Matrix) -> Generator[None, None, None]:
    """Replace ``rows`` = C of shape (n, u) by ``C L⁻ᵀ``."""
    for part in slices(len(rows), len(factor) ** 2 / 2) if len(factor) else []:
        rows[part] = blas.dtrsm(1.0, factor.T, rows[part].T, lower=0, trans_a=1).T
        yield


def add_images(factor: Matrix, columns: Matrix, total: Matrix) -> Generator[None, None, None]:
    """Replace ``columns`` = C of shape (n, u) by ``B = C L⁻ᵀ`` and add ``B Bᵀ`` to ``total``."""
    if not len(factor):
        return
    yield from divide(columns, factor)
    for part in slices(len(columns), columns.size):
        total[part, : part.stop] += columns[part] @ columns[: part.stop].T
        total[: part.start, part] = total[part, : part.start].T
        yield


def product(left: Matrix, right: Matrix) -> Generator[None, None, Matrix]:
    """``left @ right``."""
    answer = np.empty((len(left), right.shape[1]))
    for part in slices(len(left), right.size):
        np.matmul(left[part], right, out=answer[part])
        yield
    return answer


def lower_product(factor: Matrix, right: Matrix) -> Generator[None, None, Matrix]:
    """``L @ right``."""
    answer = np.empty((len(factor), right.shape[1]))
    for part in slices(len(factor), max(right.size, _WORK / _BLOCK)):
        np.matmul(factor[part, : part.stop], right[: part.stop], out=answer[part])
        yield
    return answer


def upper_product(factor: Matrix, right: Matrix) -> Generator[None, None, Matrix]:
    """``Lᵀ @ right``."""
    answer = np.empty((len(factor), right.shape[1]))
    for part in slices(len(factor), max(right.size, _WORK / _BLOCK)):
        np.matmul(factor[part.start :, part].T, right[part.start :], out=answer[part])
        yield
    return answer


def slices(n: int, work: float) -> list[slice]:
    """Ranges of 0 to n of which each is ``_WORK`` multiplications at most, when one place is ``work``."""
    width = max(1, int(_WORK / max(1.0, work)))
    return [slice(start, min(start + width, n)) for start in range(0, n, width)]


def strips(matrix: Matrix) -> list[slice]:
    """Ranges of rows that are made one after another, with a pause after each, where every number of a matrix is touched some few times."""
    return slices(len(matrix), 4 * _TOUCH * matrix.shape[1])


def largest_eigenvalue(matrix: Matrix) -> Generator[None, None, float]:
    """Of a positive semidefinite matrix, by the power method: a little too small, if anything."""
    vector = np.cos(np.arange(len(matrix)))
    vector += 2.0
    value = 0.0
    for _ in range(_POWERS):
        vector /= np.linalg.norm(vector)
        image = matrix @ vector
        yield
        value = float(vector @ image)
        if not value > 0:
            return float(np.trace(matrix))
        vector = image
    return value


def least_eigenvalue(image: Callable[[Vector], Vector], inverse_image: Callable[[Vector], Vector], n: int) -> Generator[None, None, float]:
    """The least λ with ``A q = λ B q``, by ``image`` of symmetric A and ``inverse_image`` of positive definite B, or a little below it.

    The method of Lanczos, with the bound of its residual taken off (as Toh 2002 for the step lengths of interior points).
    """
    z = np.cos(np.arange(n, dtype=float)) + 2.0
    q, last = inverse_image(z), np.zeros(n)
    diagonal: list[float] = []
    beside: list[float] = []
    size = math.sqrt(float(z @ q))
    while True:
        z, q = z / size, q / size
        following = image(q)
        diagonal.append(float(q @ following))
        following -= diagonal[-1] * z + (size * last if beside else 0.0)
        last, z, q = z, following, inverse_image(following)
        size = math.sqrt(max(0.0, float(z @ q)))
        yield
        if size == 0 or len(diagonal) >= min(n, _LANCZOS[0]):
            values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, -1))
            unsure = size * abs(float(vectors[-1, 0]))
            if unsure <= _SURE * max(1.0, abs(float(values[0]))) or len(diagonal) == min(n, _LANCZOS[1]):
                return float(values[0]) - unsure
        beside.append(size)


def reach(values: Vector, move: Vector) -> float:
    """How far values that are not negative can go along ``move`` before one of them is."""
    falling = move < 0
    return float(np.min(-values[falling] / move[falling])) if falling.any() else np.inf


def retreat(length: float, attempt: Callable[[float], Generator[None, None, T]]) -> Generator[None, None, tuple[float, T]]:
    """The first length that an attempt does not find Indefinite, and what it made there; raises Indefinite if there is none."""
    while length > _SHORTEST:
        try:
            return length, (yield from attempt(length))
        except Indefinite:
            length *= _RETREAT
    raise Indefinite
