"""Answers that are files and tables, and the choice of their media type."""
