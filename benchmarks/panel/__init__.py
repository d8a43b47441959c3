"""The panel: sets with a few labels each, come by in many ways, and the errors of each method on them (``python -m benchmarks.panel``)."""
