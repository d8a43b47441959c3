"""Evaluation of a model on labeled documents, as JSON, as an HTML page and as plots."""
