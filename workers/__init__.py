"""Training jobs: what is stored, how jobs travel and what runs them. Knows ``core``; knows nothing of HTTP."""
