"""The worker process: takes jobs from the queue and runs each attempt in a child of its own."""
