"""What is stored, a module a noun: datasets, jobs, models, API keys, idempotency keys, deletions."""
