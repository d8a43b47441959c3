"""Predictions, their explanations, and suggestions of documents to label next."""
