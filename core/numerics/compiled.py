"""How loops are compiled, so that every x86-64 processor computes the same bits.

No ``fastmath``: the compiler may not reorder sums, nor fuse a product with a sum, since either would let the width of a
processor's registers decide digits. A sum over many numbers is written out in a fixed number of lanes instead
(core.numerics.vectors, core.engine.csr_loops). Division by zero gives what IEEE 754 says.

Elementary functions are those of core.numerics.elementary, a number at a time, and for arrays of many numbers.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.numerics import elementary
from core.numerics.elementary import (
    INTEGERS,
    LARGEST_POWER,
    LEAST_POWER,
    MANTISSA_BITS,
    ROOT_HALF_BITS,
    ROUNDER,
    SMALLEST_NORMAL,
)

compiled = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to, which Numba sees as another type.

    Arrays from a store are such views: loops are compiled for that type alone.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


_inlined = njit(nogil=True, error_model="numpy", inline="always")
_LIFT = np.int64(1024 << 52)
_INTEGER_BITS = np.uint64(np.float64(INTEGERS).view(np.uint64))
_exp_series, _log_series = _inlined(elementary.exp_series), _inlined(elementary.log_series)


@_inlined
def exp_of(power: float) -> float:
    """e to this power, which is not NaN."""
    series, exponent = _exp_series(min(max(power, LEAST_POWER), LARGEST_POWER))
    half = (exponent * 0.5 + ROUNDER) - ROUNDER  # two factors: one alone would not reach the smallest numbers
    found: float = series * _power_of_two(half) * _power_of_two(exponent - half)
    return found


@_inlined
def log_of(value: float) -> float:
    """The natural logarithm of a number above 0."""
    tiny = value < SMALLEST_NORMAL
    above = np.float64(value * 2.0**54 if tiny else value).view(np.int64) - ROOT_HALF_BITS
    mantissa = np.int64((above & MANTISSA_BITS) + ROOT_HALF_BITS).view(np.float64)
    # an unsigned shift and a bit pattern in place of a signed shift and a conversion, for which small processors have
    # no vector instruction
    lifted = np.uint64(np.uint64(above + _LIFT) >> np.uint64(52)) | _INTEGER_BITS
    exponent = np.uint64(lifted).view(np.float64) - (INTEGERS + 1024.0)
    found: float = _log_series(mantissa, exponent - (54.0 if tiny else 0.0))
    return found


@_inlined
def _power_of_two(exponent: float) -> float:
    return np.int64(np.float64(exponent + (INTEGERS + 1023.0)).view(np.int64) << np.int64(52)).view(np.float64)


def exp(powers: NDArray[np.float64]) -> NDArray[np.float64]:
    """core.numerics.elementary.exp of an array without NaN, in a tenth of the time."""
    out = np.empty(powers.shape)
    _exp(np.ascontiguousarray(powers).reshape(-1), out.reshape(-1))
    return out


def log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """core.numerics.elementary.log of an array of numbers above 0, in a tenth of the time."""
    out = np.empty(values.shape)
    _log(np.ascontiguousarray(values).reshape(-1), out.reshape(-1))
    return out


@compiled
def _exp(powers: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    for i in range(len(powers)):
        out[i] = exp_of(powers[i])


@compiled
def _log(values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    for i in range(len(values)):
        out[i] = log_of(values[i])
