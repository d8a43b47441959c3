"""The protocol of jobs in one process, against a simulated store, Redis and clock: see
``benchmarks.simulation.protocol``.
"""
