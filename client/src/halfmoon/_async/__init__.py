"""The client that is awaited. ``halfmoon._sync`` is generated from it by ``client/generate.py``."""
