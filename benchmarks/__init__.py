"""Measurements.

``python -m benchmarks`` and the modules below it each write a page of ``docs/``, from what the machine does now.
"""
