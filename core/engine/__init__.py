"""Runs solvers: they ask for passes over the rows, and the engine alone touches the rows."""
