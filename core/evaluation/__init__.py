"""Evaluation of predictions: confusion of labels, ranking by scores, reliability of probabilities.

Loads with NumPy alone.
"""
