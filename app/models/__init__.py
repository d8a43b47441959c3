"""Models: versions and aliases."""
