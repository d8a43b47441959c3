"""The algorithms: one file or folder for each line of core.registry."""
