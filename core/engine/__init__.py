"""Runs solvers: they ask for passes over the rows, and the engine alone touches the rows."""

from typing import Literal

EngineName = Literal["memory", "mapped", "cluster"]
"""from the cheapest: all rows in memory; in files that are mapped; in files that the processes of a cluster map"""
