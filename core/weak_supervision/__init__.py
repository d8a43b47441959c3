"""Weak supervision: labels made of votes, of one class alone, or of nothing, before a training learns from them."""
