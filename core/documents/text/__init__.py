"""Text: words and terms, and the rows of TF-IDF weights that they become."""
