"""Models: their versions and aliases."""
