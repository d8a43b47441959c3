"""Dense linear algebra for core.semisup.interior: LAPACK and BLAS on arrays in C order, in pieces.

What takes long is a generator that pauses every ``_WORK`` multiplications or more often, and returns its answer. The transpose of an array in C order
is one in Fortran's order, so that whole arrays are not copied.
"""

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_WORK = 2e9
"""multiplications between two pauses: about a tenth of a second on one current core"""
_PANEL = 1024
"""columns that LAPACK factors at once: narrower panels take longer together (measured: a tenth more than all at once, and 256 a fifth)"""
_TOUCH = 100
"""multiplications in the time of which a number is read and written, in memory that may be new"""
_POWERS = 20
_BACK_OFF = 0.97
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


def is_definite(matrix: Matrix) -> Generator[None, None, bool]:
    """Whether a symmetric matrix, which is overwritten, is positive definite."""
    try:
        yield from cholesky(matrix)
    except Indefinite:
        return False
    return True


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


def add_images(factor: Matrix, columns: Matrix, total: Matrix) -> Generator[None, None, None]:
    """Replace ``columns`` = C of shape (n, u) by ``B = C L⁻ᵀ`` and add ``B Bᵀ`` to ``total``."""
    if not len(factor):
        return
    for part in slices(len(columns), len(factor) ** 2 / 2):
        columns[part] = blas.dtrsm(1.0, factor.T, columns[part].T, lower=0, trans_a=1).T
        yield
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


def reach(values: Vector, move: Vector) -> float:
    """How far values that are not negative can go along ``move`` before one of them is."""
    falling = move < 0
    return float(np.min(-values[falling] / move[falling])) if falling.any() else np.inf


def longest(limit: float, inside: Callable[[float], Generator[None, None, bool]], shrink: float) -> Generator[None, None, float]:
    """The whole step, or nearly the longest one below ``limit`` that stays inside; raises Indefinite if there is none."""
    length = min(1.0, 0.999 * limit)
    while length > _SHORTEST:
        if (yield from inside(length)):
            return length if length == 1.0 else _BACK_OFF * length
        length *= shrink
    raise Indefinite
