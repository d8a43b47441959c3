"""Formats with a document a row of text: tables with named columns, and svmlight."""
