"""The client that waits. It is generated from ``halfmoon._async`` by ``client/generate.py``; change that one."""
