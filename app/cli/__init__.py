"""Commands of ``halfmoon``. Each imports its modules when it runs."""
