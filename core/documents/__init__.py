"""Documents of every kind, and how they become rows of a sparse matrix."""
