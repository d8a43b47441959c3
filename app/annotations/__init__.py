"""Annotations: people's answers to the documents of a dataset, in an append-only log."""
