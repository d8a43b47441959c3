"""Annotations of people, the labels that follow from them, suggestions, audits."""
