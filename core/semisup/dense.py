"""Dense linear algebra for core.semisup.interior: LAPACK and BLAS on arrays in C order, without copies."""

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_WORK = 2e9
"""multiplications between two pauses: about a tenth of a second on one current core"""
_BACK_OFF = 0.97
_SHORTEST = 1e-7


class Indefinite(Exception):
    """A matrix that had to be positive definite is not, to the precision of its numbers."""


def cholesky(matrix: Matrix) -> Matrix:
    """The lower factor L of a symmetric matrix, of which the lower triangle is read and which is overwritten; raises Indefinite."""
    if not len(matrix):
        return matrix
    # the transpose of an array in C order is one in Fortran's order: nothing is copied
    factor, info = lapack.dpotrf(matrix.T, lower=0, clean=1, overwrite_a=1)
    if info:
        raise Indefinite
    return np.asarray(factor.T)


def is_definite(matrix: Matrix) -> bool:
    """Whether a symmetric matrix, which is overwritten, is positive definite."""
    try:
        cholesky(matrix)
    except Indefinite:
        return False
    return True


def solved(factor: Matrix, right: Vector, *, transposed: bool = False) -> Vector:
    """``L⁻¹ right``, or ``L⁻ᵀ right``."""
    if not len(factor):
        return right
    return np.asarray(blas.dtrsv(factor.T, right, lower=0, trans=0 if transposed else 1))


def inverse(factor: Matrix) -> Matrix:
    """``(L Lᵀ)⁻¹``, both triangles."""
    lower = np.tril(lapack.dpotri(factor.T, lower=0)[0].T)
    return np.asarray(lower + np.tril(lower, -1).T)


def add_images(factor: Matrix, columns: Matrix, total: Matrix) -> Generator[None, None, None]:
    """Replace ``columns`` = C of shape (n, u) by ``B = C L⁻ᵀ`` and add ``B Bᵀ`` to ``total``, pausing now and then."""
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
    """``left @ right``, pausing now and then."""
    answer = np.empty((len(left), right.shape[1]))
    for part in slices(len(left), right.size):
        np.matmul(left[part], right, out=answer[part])
        yield
    return answer


def slices(n: int, work: float) -> list[slice]:
    """Ranges of 0 to n of which each is ``_WORK`` multiplications at most, when one place is ``work``."""
    width = max(1, int(_WORK / max(1.0, work)))
    return [slice(start, min(start + width, n)) for start in range(0, n, width)]


def largest_eigenvalue(matrix: Matrix) -> float:
    """Of a positive semidefinite matrix, by the power method: a little too small, if anything."""
    vector = np.cos(np.arange(len(matrix)))
    vector += 2.0
    value = 0.0
    for _ in range(20):
        vector /= np.linalg.norm(vector)
        image = matrix @ vector
        value = float(vector @ image)
        if not value > 0:
            return float(np.trace(matrix))
        vector = image
    return value


def reach(values: Vector, move: Vector) -> float:
    """How far values that are not negative can go along ``move`` before one of them is."""
    falling = move < 0
    return float(np.min(-values[falling] / move[falling])) if falling.any() else np.inf


def longest(limit: float, inside: Callable[[float], bool], shrink: float) -> Generator[None, None, float]:
    """The whole step, or nearly the longest one below ``limit`` that stays inside; raises Indefinite if there is none."""
    length = min(1.0, 0.999 * limit)
    while length > _SHORTEST:
        yield
        if inside(length):
            return length if length == 1.0 else _BACK_OFF * length
        length *= shrink
    raise Indefinite
