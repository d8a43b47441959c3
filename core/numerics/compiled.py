"""How loops are compiled, so that every x86-64 processor computes the same bits.

No ``fastmath``: the compiler may not reorder sums, nor fuse a product with a sum, since either would let the width of a processor's registers
decide digits. A sum over many numbers is written out in a fixed number of lanes instead (core.numerics.vectors, core.engine.csr_loops).
Elementary functions come from core.numerics.compiled_elementary; division by zero gives what IEEE 754 says.
"""

from numba import njit

compiled = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)
