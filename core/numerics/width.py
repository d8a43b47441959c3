"""How many right-hand sides share a pass over the rows, and so how many two-class problems are solved at a time."""

WIDTH = 8
"""float64 numbers of one cache line"""
