"""The options of each algorithm: frozen, validated, every error naming its field. Loads without NumPy."""
