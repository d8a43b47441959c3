"""Exponential and logarithm, with the same bits on every processor.

NumPy's and the C library's choose their code by the processor, and so their last bit. These are sums and products
alone, which IEEE 754 defines to the bit. They lie within one unit in the last place of NumPy's (measured at three
million numbers). The module loads with NumPy alone; core.numerics.compiled has the same functions for
compiled loops, made of the same ``exp_series`` and ``log_series``.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238
"""ln 2, rounded so that its product with an exponent is exact"""
LN2_LOW = 1.9082149292705877e-10
"""the rest of ln 2"""
LARGEST_POWER, LEAST_POWER = 710.0, -746.0
"""powers from which on exp is infinite and 0"""
ROUNDER = 6755399441055744.0
"""1.5 · 2⁵²: added and taken off again it rounds to an integer"""
INTEGERS = 2.0**52
"""added to a number below 2⁵¹ it leaves that, as an integer, in the lowest bits"""
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
"""bits of √½: mantissas are taken from there to √2"""
_ROOT_HALF = float(np.array([ROOT_HALF_BITS]).view(np.float64)[0])
MANTISSA_BITS = (1 << 52) - 1
SMALLEST_NORMAL = 2.0**-1022
_F = tuple(1.0 / math.factorial(k) for k in range(14))
"""coefficients of Taylor's series of the exponential"""
_FEW = 8
"""numbers or fewer that are faster one by one"""
_TILE = 1 << 12
"""numbers at a time: their temporaries stay in the processor's cache"""


def exp_series(power: Any) -> tuple[Any, Any]:
    """(p, k) with ``exp(power) = p · 2ᵏ``, p between √½ and √2; for arrays, and compiled for numbers.

    Taylor's series at the distance of ``power`` to the nearest multiple of ln 2: beyond its 13th term nothing is left
    of a float64.
    """
    k = (power * LOG2_E + ROUNDER) - ROUNDER
    r = (power - k * LN2_HIGH) - k * LN2_LOW
    p = r * _F[13] + _F[12]
    p = p * r + _F[11]
    p = p * r + _F[10]
    p = p * r + _F[9]
    p = p * r + _F[8]
    p = p * r + _F[7]
    p = p * r + _F[6]
    p = p * r + _F[5]
    p = p * r + _F[4]
    p = p * r + _F[3]
    p = p * r + 0.5
    p = p * r + 1.0
    return p * r + 1.0, k


def log_series(mantissa: Any, exponent: Any) -> Any:
    """``ln(mantissa · 2^exponent)`` for mantissas from √½ to √2; for arrays, and compiled for numbers.

    With s = f / (2 + f), f = mantissa − 1: ``ln(1 + f) = 2 artanh(s) = f − s (f − 2 (s²/3 + s⁴/5 + …))``; |s| < .172,
    so ten terms do.
    """
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = z * (1.0 / 21.0) + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    rest = 2.0 * z * p
    return exponent * LN2_HIGH + (f - (s * (f - rest) - exponent * LN2_LOW))


def exp(powers: Vector) -> Vector:
    """e to these powers, of their shape; infinite above 709.78, NaN of NaN."""
    if powers.size <= _FEW:
        return np.array([_exp_of(power) for power in powers.ravel().tolist()]).reshape(powers.shape)
    return _tiled(_exp, powers)


def log(values: Vector) -> Vector:
    """Natural logarithms, of the shape of ``values``; −∞ of 0, NaN below."""
    return _tiled(_log, values)


def expit(logits: Vector) -> Vector:
    """``1 / (1 + exp(−logits))``, of their shape."""
    return np.asarray(1.0 / (1.0 + exp(np.maximum(-np.asarray(logits, np.float64), LEAST_POWER).clip(max=700.0))))


def logit(fractions: Vector) -> Vector:
    """``ln(p / (1 − p))``, of the shape of ``fractions``."""
    given = np.asarray(fractions, np.float64)
    return log(given) - log(1.0 - given)


def log_sum_exp(values: Vector, axis: int) -> Vector:
    """``ln Σ exp(values)`` along an axis, which is dropped."""
    largest = np.max(values, axis=axis, keepdims=True)
    return np.asarray(log(exp(values - largest).sum(axis=axis)) + np.squeeze(largest, axis))


def softmax(logits: Vector) -> Vector:
    """``exp(x) / Σ exp(x)`` along the last axis, of the shape of ``logits``."""
    return np.asarray(exp(logits - log_sum_exp(logits, axis=-1)[..., None]))


def log_add_exp(left: Vector, right: Vector) -> Vector:
    """``ln(exp(left) + exp(right))`` of finite numbers."""
    return np.asarray(np.maximum(left, right) + log(1.0 + exp(-np.abs(left - right))))


def log_of(value: float) -> float:
    """The natural logarithm of one number: as ``log``, without the cost of an array."""
    if not SMALLEST_NORMAL <= value < math.inf:
        return float(_log(np.asarray(value, np.float64)))
    mantissa, exponent = math.frexp(value)
    return float(log_series(mantissa, exponent) if mantissa >= _ROOT_HALF else log_series(2.0 * mantissa, exponent - 1))


def expit_of(logit: float) -> float:
    """``1 / (1 + exp(−logit))`` of one number."""
    return float(expit(np.array([logit]))[0])


def logit_of(fraction: float) -> float:
    """``ln(p / (1 − p))`` of one number."""
    return log_of(fraction) - log_of(1.0 - fraction)


def standard_normal(rng: np.random.Generator, count: int) -> Vector:
    """So many standard normal numbers, by the polar method of Marsaglia and Bray (1964): the generator's own call the C
    library's logarithm.
    """
    found: list[Vector] = []
    while sum(map(len, found)) < count:
        u, v = 2.0 * rng.random((2, count + 8)) - 1.0
        square = u * u + v * v
        u, square = u[(square > 0) & (square < 1)], square[(square > 0) & (square < 1)]
        found.append(u * np.sqrt(-2.0 * log(square) / square))
    return np.concatenate(found)[:count] if found else np.zeros(0)


def _tiled(function: Any, given: Vector) -> Vector:
    numbers = np.ascontiguousarray(given, np.float64)
    out = np.empty_like(numbers)
    flat, results = numbers.reshape(-1), out.reshape(-1)
    for start in range(0, len(flat), _TILE):
        results[start : start + _TILE] = function(flat[start : start + _TILE])
    return out


def _exp_of(power: float) -> float:
    """e to one power, without the cost of an array."""
    if not -708.0 < power < 709.0:
        return float(_exp(np.array([power]))[0])
    series, exponent = exp_series(power)
    return math.ldexp(series, int(exponent))


def _exp(powers: Vector) -> Vector:
    series, exponents = exp_series(np.minimum(np.maximum(powers, LEAST_POWER), LARGEST_POWER))
    missing = np.isnan(powers)
    half = np.where(missing, 0.0, (exponents * 0.5 + ROUNDER) - ROUNDER)
    rest = np.where(missing, 0.0, exponents - half)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(series * _power_of_two(half) * _power_of_two(rest))


def _power_of_two(exponents: Vector) -> Vector:
    return np.asarray(((exponents + (INTEGERS + 1023.0)).view(np.int64) << 52).view(np.float64))


def _log(values: Vector) -> Vector:
    tiny = values < SMALLEST_NORMAL
    bits = np.where(tiny, np.minimum(values, SMALLEST_NORMAL) * 2.0**54, values).view(np.int64)
    above = bits - ROOT_HALF_BITS
    mantissas = ((above & MANTISSA_BITS) + ROOT_HALF_BITS).view(np.float64)
    exponents = (above >> 52).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found = log_series(mantissas, exponents - 54.0 * tiny)
    found = np.where(values == np.inf, np.inf, found)
    return np.where(values > 0, found, np.where(values == 0, -np.inf, np.nan))
