"""Formats of numeric arrays: .npy, and .npz with sparse matrices."""
