"""The panel: sets with a few labels each, as a person would label them, and the errors of each method on them (``python -m benchmarks.panel``)."""
