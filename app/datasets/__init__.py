"""Datasets: upload, list, show, relabel, delete."""
