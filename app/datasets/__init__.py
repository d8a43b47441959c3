"""Datasets: upload, list, show, relabel and delete."""
