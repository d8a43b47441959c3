"""The commands of halfmoon. Each imports what it runs only when it runs."""
