"""Archives of text files in folders that are named by class."""
