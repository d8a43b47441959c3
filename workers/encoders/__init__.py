"""Encoders at hand: pre-trained models in folders of this machine, which make a vector of a text."""
