"""The panel: sets with a few labels each, obtained in many ways, and the errors of each method on them (``python -m
benchmarks.panel``).
"""
