"""The objectives, apart from what minimises them: losses, the balance constraint, the relaxation."""
