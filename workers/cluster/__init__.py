"""One training on several machines.

Dask's scheduler and workers read parts of its rows and add up their sums (the extra ``cluster``).
"""
