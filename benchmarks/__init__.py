"""Measurements: ``python -m benchmarks.figures`` holds the solvers to published and measured figures; see ``docs/``."""
