"""Commands of ``halfmoon``. Each imports what it needs when it runs."""
