"""Trained models: predictions, storage, explanations of scores. Loads with NumPy alone."""
