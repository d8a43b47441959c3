"""Redis: the queue of job ids, and the state that may be lost."""
