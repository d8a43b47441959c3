"""Annotations: what people do with the documents of a dataset, in an append-only log."""
