"""Dense linear algebra in blocks, by LAPACK and BLAS on arrays in C order.

Every long operation is a generator: it yields after ``_WORK`` multiplications at most and returns its answer. The
transpose of an array in C order is an array in Fortran's order, so whole arrays are not copied. Digits depend on the
processor, by which BLAS chooses its loops; docs/reproducibility.md says how much.
"""

import math
from collections.abc import Callable, Generator
from typing import TypeVar

import numpy as np
from scipy.linalg import blas, lapack

from core.numerics.elementary import Matrix as Matrix
from core.numerics.elementary import Vector as Vector

T = TypeVar("T")

_WORK = 1e9
"""multiplications between two yields: about 50 ms on one current core; twice as many are no faster"""
_PANEL = 1024
"""columns that LAPACK factors at once; measured: a tenth slower than all at once, where panels of 256 are a fifth
slower"""
_TOUCH = 100
"""multiplications that take as long as reading and writing one number, in memory that may be new"""
_POWERS = 20
_BLOCK = 256
"""rows of a triangular factor that are multiplied at once; fewer rows waste less on zeros"""
_LANCZOS = (8, 60)
"""fewest and most steps of Lanczos' method: what it finds first need not be the end of the spectrum"""
_SURE = 0.02
"""accuracy of the least eigenvalue when Lanczos' method ends, relative where the eigenvalue is beyond 1"""
_BACKTRACK = 0.8
_SHORTEST = 1e-7


class Indefinite(Exception):
    """A matrix is not positive definite, to the precision of its numbers."""


def cholesky(matrix: Matrix) -> Generator[None, None, Matrix]:
    """The lower Cholesky factor L of a symmetric matrix. Its lower triangle is read, and it becomes L. Raises
    Indefinite.

    Left-looking: each panel is updated by the columns left of it before it is factored.
    """
    for start in range(0, len(matrix), _PANEL):
        stop = min(start + _PANEL, len(matrix))
        own, done = slice(start, stop), np.ascontiguousarray(matrix[start:stop, :start])
        corner = matrix[own, own].T
        if start:
            corner = blas.dsyrk(-1.0, done.T, 1.0, corner, trans=1, lower=0)
        factor, info = lapack.dpotrf(corner, lower=0, clean=1, overwrite_a=1)
        if info or np.isnan(factor[-1, -1]):  # NaN spreads to the last entry, and LAPACK may not report it
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
        half[part.start :, part] = blas.dtrsm(
            1.0, factor[part.start :, part.start :].T, unit, lower=0, trans_a=1, overwrite_b=1
        )
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
    """Ranges of 0 to n of at most ``_WORK`` multiplications each, where one position takes ``work``."""
    width = max(1, int(_WORK / max(1.0, work)))
    return [slice(start, min(start + width, n)) for start in range(0, n, width)]


def strips(matrix: Matrix) -> list[slice]:
    """Ranges of rows for elementwise work, which touches every number of a matrix a few times."""
    return slices(len(matrix), 4 * _TOUCH * matrix.shape[1])


def largest_eigenvalue(matrix: Matrix) -> Generator[None, None, float]:
    """Largest eigenvalue of a positive semidefinite matrix by the power method; a lower estimate."""
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


def least_eigenvalue(
    image: Callable[[Vector], Vector], inverse_image: Callable[[Vector], Vector], n: int
) -> Generator[None, None, float]:
    """A lower estimate of the least λ with ``A q = λ B q``, given ``image`` q ↦ A q and ``inverse_image`` z ↦ B⁻¹ z.

    A is symmetric, B positive definite, both of shape (n, n). Lanczos' method less the bound of its residual, as in Toh
    2002 for the step lengths of interior-point methods.
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


def max_step(values: Vector, direction: Vector) -> float:
    """The largest step along ``direction`` that leaves all values, which are not negative, so; both of shape (n,)."""
    falling = direction < 0
    return float(np.min(-values[falling] / direction[falling])) if falling.any() else np.inf


def backtrack(
    length: float, attempt: Callable[[float], Generator[None, None, T]]
) -> Generator[None, None, tuple[float, T]]:
    """Shorten ``length`` until ``attempt`` of it does not raise Indefinite; returns it and the result of the attempt.

    Raises Indefinite.
    """
    while length > _SHORTEST:
        try:
            return length, (yield from attempt(length))
        except Indefinite:
            length *= _BACKTRACK
    raise Indefinite
