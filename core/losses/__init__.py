"""The objectives, apart from their optimizers: losses, the balance constraint, the relaxation."""
