"""The kernel family against Collobert et al. 2006, UniverSVM and scikit-learn: ``python -m benchmarks.kernel`` writes ``docs/kernel-figures.md``."""
