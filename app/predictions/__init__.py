"""Predictions, explanations, and suggestions of what to label next."""
