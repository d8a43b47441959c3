"""Cross-validation: folds, held-out scores, and calibration of probabilities."""
