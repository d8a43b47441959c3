"""Documents in JSON: the form of one, and the formats that hold many."""
