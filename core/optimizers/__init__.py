"""Minimises and maximises: Newton, conjugate gradients, SMO, CCCP, interior points. Knows no algorithm by name."""
