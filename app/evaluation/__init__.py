"""How good a model is on labeled documents, as JSON and as a page for people."""
