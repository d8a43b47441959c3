"""The mathematics of Halfmoon: problems in, results out.

Nothing here reads a file, opens a socket or knows of HTTP, Redis or RQ. Modules that need Numba are imported by the
solvers alone, so that ``core.documents.rows``, ``core.options.linear``, ``core.registry`` and ``core.models.model``
load fast in the gateway.
"""
