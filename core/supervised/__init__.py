"""Solvers of convex, supervised objectives; the semi-supervised methods are loops around them."""
