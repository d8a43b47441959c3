"""Kernel functions, their rows in a bounded cache, and the convex dual over them.

``function`` loads with NumPy alone, so that a stored model can predict without a compiler; the others need Numba.
"""
