"""Upkeep of the store: reconciliation, garbage collection, retention, backup."""
