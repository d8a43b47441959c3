"""Trained models: what predicts, how it is stored, why a score is what it is. Loads with NumPy alone."""
