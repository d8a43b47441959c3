"""How loops are compiled: they release the interpreter lock, are cached on disk, and allocate nothing."""

from numba import njit

_SUMS = {"reassoc", "contract"}
compiled = njit(nogil=True, cache=True, fastmath=_SUMS, boundscheck=False)
