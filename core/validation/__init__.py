"""Cross-validation: folds, scores of labels left out, calibrated probabilities."""
