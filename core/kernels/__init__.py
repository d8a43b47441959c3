"""Kernel functions, and rows of kernel matrices in a bounded cache."""
