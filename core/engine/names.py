"""The names of the engines. Loads nothing, for the estimate of memory."""

from typing import Literal

EngineName = Literal["memory", "mapped", "cluster"]
ENGINES: tuple[EngineName, ...] = ("memory", "mapped", "cluster")
"""from the cheapest: all rows in memory; in files that are mapped; in files that the processes of a cluster map"""
