"""The panel: sets with a few labels each, as a person would label them, and what each method makes of them (``python -m benchmarks.panel``)."""
