"""Semi-supervised solvers."""
